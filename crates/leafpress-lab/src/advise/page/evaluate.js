// The model worked out: crates/leafpress-lab/src/model/evaluate.rs line by line, under the same names.
//
// Options: { dataBytes, memoryBytes, pageBytes, codecs: [{ name, ratio, compressUs, decompressUs }], access, deviceUs, deviceIops (or null),
// hitUs, backgroundPct, workers, method ("corrected", "as_published"), replacement ("clock", "lru", "ideal"), restoreAfter, overhead ("pool",
// "none") }.

const STEPS = 100;
const NOTHING_US = 1e-9;
const TABLE_BYTES = 56;
const BLOCK_BYTES = 12;

// The chains of a pool hang on nothing but its `restoreAfter`.
const clocks = new Map();

function clockOf(restoreAfter) {
  if (!clocks.has(restoreAfter)) clocks.set(restoreAfter, new Clock(restoreAfter));
  return clocks.get(restoreAfter);
}

class Model {
  constructor(options) {
    this.options = options;
    this.dataBytes = options.access.kind === "trace" ? options.access.pages * options.pageBytes : options.dataBytes;
    this.pages = this.dataBytes / Math.max(options.pageBytes, 1);
    this.tiers = accessTiers(options.access, this.pages);
    const isClock = options.replacement === "clock" && options.method === "corrected";
    this.clock = isClock ? clockOf(options.restoreAfter) : null;
  }

  room(memoryBytes, share, ratio) {
    const pageBytes = this.options.pageBytes;
    if (this.options.overhead === "none") {
      return {
        rawPages: memoryBytes * (1 - share) / pageBytes,
        compressedPages: memoryBytes * share / (pageBytes / ratio),
      };
    }
    const segment = Math.max(clamp(memoryBytes / 64, 16384, 262144), pageBytes);
    const memory = memoryBytes * (1 - 1 / 128);
    const block = pageBytes / ratio + BLOCK_BYTES;
    const lost = Math.min(block / 2 / segment, 0.5);
    const compressed = Math.max(memory * share - 1.5 * segment, 0) * (1 - lost);
    const frames = memory * (1 - share) / (pageBytes + TABLE_BYTES);
    return {
      rawPages: frames - Math.min(frames / 64, 256),
      compressedPages: compressed / (block + TABLE_BYTES),
    };
  }

  events(room) {
    const access = this.options.access;
    if (this.clock) return this.clock.events(this.tiers, room);
    if (this.options.replacement === "ideal") return ideal((pages) => accessMass(access, this.pages, pages), room);
    return lru((pages) => accessLruHits(access, this.tiers, pages), room);
  }

  raw(memoryBytes) {
    const options = this.options;
    if (options.method === "as_published") {
      const fits = shareThatFits(memoryBytes, 0, 1, this.dataBytes);
      const hitRatio = accessMass(options.access, this.pages, fits * this.pages);
      return this.at(0, fits, hitRatio, 0, 0, publishedRawUs(hitRatio, options.deviceUs));
    }
    const none = { name: "none", ratio: 1, compressUs: 0, decompressUs: 0 };
    return this.corrected(none, this.room(memoryBytes, 0, 1), 0);
  }

  point(codec, share) {
    const [options, memory] = [this.options, this.options.memoryBytes];
    if (options.method === "corrected") {
      return this.corrected(codec, this.room(memory, share, codec.ratio), share);
    }
    const fits = shareThatFits(memory, share, codec.ratio, this.dataBytes);
    const hitRatio = accessMass(options.access, this.pages, fits * this.pages);
    const chance = chanceCompressed(share, codec.ratio);
    const us = publishedUs(hitRatio, chance, codec.compressUs, codec.decompressUs, options.deviceUs);
    const point = this.at(share, fits, hitRatio, chance, 1 - hitRatio, us);
    point.freeUs = publishedUs(hitRatio, chance, 0, 0, options.deviceUs);
    return point;
  }

  corrected(codec, room, share) {
    const options = this.options;
    const events = this.events(room);
    const costs = {
      hitUs: options.hitUs,
      deviceUs: options.deviceUs,
      compressUs: codec.compressUs,
      decompressUs: codec.decompressUs,
      background: options.backgroundPct / 100,
    };
    const hits = hitRatioOf(events);
    const chance = hits > 0 ? events.compressedHits / hits : 0;
    const fits = Math.min((room.rawPages + room.compressedPages) / this.pages, 1);
    const point = this.at(share, fits, hits, chance, events.compressions, correctedUs(events, costs));
    point.freeUs = correctedUs(events, { ...costs, compressUs: 0, decompressUs: 0 });
    return point;
  }

  // `freeUs`, which points have beside what evaluate.rs gives them, is microseconds a page if the codec took no time.
  at(share, fits, hitRatio, chance, compressions, us) {
    const iops = this.options.method === "corrected" ? this.options.deviceIops : null;
    return {
      share,
      fits,
      hitRatio,
      chanceCompressed: chance,
      compressions,
      usPerPage: us,
      pagesPerSecond: pagesPerSecond(us, this.options.workers, hitRatio, iops),
      freeUs: us,
    };
  }
}

// What follows looks at many points. Each of these functions yields between two of them, so that a page can answer its reader meanwhile;
// `finish` runs one to its end.
function finish(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

// formulas.rs has it as well.
function* bisecting(figure, from, to) {
  let [low, high] = [from, to];
  const rising = figure(low) < 0;
  for (let turn = 0; turn < 60; turn += 1) {
    yield;
    const middle = (low + high) / 2;
    if ((figure(middle) < 0) === rising) low = middle;
    else high = middle;
    if (high - low < 1e-9) break;
  }
  return (low + high) / 2;
}

const wins = (point, rawUs) => point.usPerPage < rawUs - NOTHING_US;

function* paysUntil(curve, overRaw, rawUs) {
  const last = curve.findLastIndex((point) => wins(point, rawUs));
  if (last < 0) return 0;
  return last + 1 < curve.length ? yield* bisecting(overRaw, curve[last].share, curve[last + 1].share) : 1;
}

// { kind: "at_once" }, { kind: "share", share } or { kind: "never" }.
function* breakEven(curve, overRaw, rawUs) {
  const first = curve.slice(1).findIndex((point) => wins(point, rawUs));
  if (first < 0) return { kind: "never" };
  const [before, after] = [curve[first].share, curve[first + 1].share];
  if (first === 0 && overRaw(1e-6) < 0) return { kind: "at_once" };
  return { kind: "share", share: yield* bisecting(overRaw, Math.max(before, 1e-6), after) };
}

function best(curve, raw) {
  const better = (one, other) => (other.usPerPage < one.usPerPage - NOTHING_US ? other : one);
  return curve.slice(1).reduce(better, raw);
}

// Of codecs with their curves, [{ codec, curve }].
function* crossings(codecs, model) {
  const found = [];
  for (const [at, one] of codecs.entries()) {
    for (const other of codecs.slice(at + 1)) {
      const between = (share) => model.point(one.codec, share).usPerPage - model.point(other.codec, share).usPerPage;
      const difference = (step) => one.curve[step].usPerPage - other.curve[step].usPerPage;
      for (let step = 1; step < STEPS; step += 1) {
        const [before, after] = [difference(step), difference(step + 1)];
        const apart = Math.abs(before) > NOTHING_US && Math.abs(after) > NOTHING_US;
        if (!apart || (before > 0) === (after > 0)) continue;
        const share = yield* bisecting(between, one.curve[step].share, one.curve[step + 1].share);
        const [faster, slower] = after > 0 ? [other, one] : [one, other];
        found.push({
          faster: faster.codec.name,
          slower: slower.codec.name,
          share,
          usPerPage: model.point(one.codec, share).usPerPage,
        });
      }
    }
  }
  return found.sort((one, other) => one.share - other.share);
}

function* evaluate(model) {
  const raw = model.raw(model.options.memoryBytes);
  const codecs = [];
  for (const codec of model.options.codecs) {
    const at = (share) => model.point(codec, share);
    const overRaw = (share) => at(share).usPerPage - raw.usPerPage;
    const curve = [];
    for (let step = 0; step <= STEPS; step += 1) {
      curve.push(at(step / STEPS));
      yield;
    }
    codecs.push({
      codec,
      curve,
      breakEven: yield* breakEven(curve, overRaw, raw.usPerPage),
      paysUntil: yield* paysUntil(curve, overRaw, raw.usPerPage),
      best: best(curve, raw),
    });
  }
  return { raw, codecs, crossings: yield* crossings(codecs, model) };
}

// Bytes, or null.
function* rawMemoryFor(model, usPerPage) {
  const over = (bytes) => model.raw(bytes).usPerPage - usPerPage;
  const [least, most] = [model.options.pageBytes, 2 * model.dataBytes + 1048576];
  if (over(most) > 0) return null;
  if (over(least) <= 0) return least;
  return Math.exp(yield* bisecting((log) => over(Math.exp(log)), Math.log(least), Math.log(most)));
}
