// Events per access in a cache, interpolated between the nodes of the grid that the command computed (grid.rs), and their cost:
// events times prices. The model itself is not here.
//
// Options: { dataBytes, memoryBytes, pageBytes, accessBytes, codecs: [{ name, ratio, compressUs, decompressUs }],
// access (its name), deviceUs, deviceIops (or null), hitUs, backgroundPct, workers, replacement ("clock", "lru", "ideal"), mostCompressed }.

const STEPS = 100;
// Differences below this, in microseconds, are rounding.
const NOTHING_US = 1e-6;

const clamp = (figure, least, most) => Math.min(Math.max(figure, least), most);

function floats(text) {
  return new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

// The position of a figure among ascending nodes: which two, and how far from the first to the second.
function among(nodes, figure) {
  if (nodes.length < 2) return [0, 0, 0];
  let at = 1;
  while (at < nodes.length - 1 && nodes[at] < figure) at += 1;
  return [at - 1, at, clamp((figure - nodes[at - 1]) / (nodes[at] - nodes[at - 1]), 0, 1)];
}

const between = (one, other, part) => one + (other - one) * part;

class Grid {
  constructor(grid) {
    Object.assign(this, grid);
    this.memoryLogs = grid.memories.map(Math.log);
    this.rooms = grid.rooms.map((room) => ({ ...room, table: floats(room.table) }));
    this.accesses = grid.accesses.map((access) => ({
      ...access,
      replacements: access.replacements.map((of) => ({ ...of, logs: of.pages.map(Math.log), tables: of.tables.map(floats) })),
    }));
  }

  access(name) {
    return this.accesses.find((access) => access.name === name);
  }

  // Raw pages, or compressed ones of a ratio, that fit into this memory.
  room(pageBytes, ratio, memoryBytes, share) {
    const { table } = this.rooms.find((room) => room.page_bytes === pageBytes && room.ratio === ratio);
    const [low, high, down] = among(this.memoryLogs, Math.log(memoryBytes));
    const [left, right, across] = among(this.shares, share);
    const at = (row, column) => table[row * this.shares.length + column];
    const row = (number) => between(at(number, left), at(number, right), across);
    return between(row(low), row(high), down) * memoryBytes / pageBytes;
  }

  // Events per access with this many pages of data, raw pages and compressed pages. A page holds `pieces`
  // objects of an access, or an access gets a page for each of `apart`.
  events({ access, replacement, pieces, apart }, pages, rawPages, compressedPages) {
    const most = this.fits[this.fits.length - 1];
    const raw = Math.min(rawPages / pages, most);
    const compressed = Math.min(compressedPages / pages, most - raw);
    const fits = raw + compressed;
    const all = this.access(access).replacements.filter((of) => of.replacement === replacement);
    // Uniform access has a single table: all pages are alike.
    const found = all.find((of) => of.pieces === pieces) ?? all[0];
    // Nodes are spaced quadratically: a square root between them is closer to linear.
    const [low, high, down] = among(this.fits.map(Math.sqrt), Math.sqrt(fits));
    const [left, right, across] = among(this.parts, fits > 0 ? compressed / fits : 0);
    const [small, large, along] = among(found.logs, Math.log(pages / apart));
    const figure = (number) => {
      const at = (table, row, column) => table[(row * this.parts.length + column) * 3 + number];
      const row = (table, number) => between(at(table, number, left), at(table, number, right), across);
      const of = (table) => between(row(table, low), row(table, high), down);
      return between(of(found.tables[small]), of(found.tables[large]), along);
    };
    // Without room for compressed pages none is compressed.
    const [rawHits, compressedHits] = [figure(0), compressedPages > 0 ? figure(1) : 0];
    return { rawHits, compressedHits, compressions: compressedPages > 0 ? figure(2) : 0 };
  }
}

class Model {
  constructor(options, grid) {
    // `mostCompressed`: the recommended maximum of the memory for compressed pages, as in the command.
    this.options = options;
    this.grid = grid;
    this.pages = options.dataBytes / options.pageBytes;
    this.pieces = Math.max(Math.floor(options.pageBytes / options.accessBytes), 1);
    this.apart = Math.max(Math.floor(options.accessBytes / options.pageBytes), 1);
  }

  raw(memoryBytes) {
    return this.at(null, 0, memoryBytes);
  }

  point(codec, share) {
    return this.at(codec, share, this.options.memoryBytes);
  }

  at(codec, share, memoryBytes) {
    const { access, replacement, pageBytes, hitUs, deviceUs, backgroundPct, workers, deviceIops } = this.options;
    const rawPages = this.grid.room(pageBytes, null, memoryBytes, share);
    const compressedPages = codec && share > 0 ? this.grid.room(pageBytes, codec.ratio, memoryBytes, share) : 0;
    const events = this.grid.events({ access, replacement, pieces: this.pieces, apart: this.apart }, this.pages, rawPages, compressedPages);
    const hitRatio = clamp(events.rawHits + events.compressedHits, 0, 1);
    const freeUs = hitUs + (1 - hitRatio) * deviceUs;
    const codecUs = codec
      ? events.compressedHits * codec.decompressUs + events.compressions * codec.compressUs * (1 - backgroundPct / 100)
      : 0;
    const usPerPage = freeUs + codecUs;
    const asked = usPerPage > 0 ? workers * 1e6 / usPerPage : Infinity;
    const pagesPerSecond = deviceIops !== null && hitRatio < 1 ? Math.min(asked, deviceIops / (1 - hitRatio)) : asked;
    // `freeUs` is microseconds per page with a codec that costs no time.
    return { share, hitRatio, usPerPage, pagesPerSecond, freeUs };
  }

  // The codec's points over the shares.
  curve(codec) {
    return Array.from({ length: STEPS + 1 }, (_, at) => this.point(codec, at / STEPS));
  }

  // The shares from and up to which a codec is faster than no compression, and its best share.
  evaluate(codec, raw) {
    const curve = this.curve(codec);
    const over = (point) => point.usPerPage - raw.usPerPage;
    const wins = (point) => over(point) < -NOTHING_US;
    const crossing = (one, other) => between(one.share, other.share, over(one) / (over(one) - over(other)));
    const first = curve.findIndex((point, at) => at > 0 && wins(point));
    const last = curve.findLastIndex(wins);
    let breakEven = { kind: "never" };
    if (first > 0) {
      // Any compression has a cost at once: the curve begins above that of no compression.
      const before = first === 1 ? this.point(codec, 1e-4) : curve[first - 1];
      breakEven = wins(before) ? { kind: "at_once" } : { kind: "share", share: crossing(before, curve[first]) };
    }
    const paysUntil = last < 0 ? 0 : last < STEPS ? crossing(curve[last], curve[last + 1]) : 1;
    const { mostCompressed } = this.options;
    const bounded = [...curve.slice(1).filter((point) => point.share < mostCompressed), this.point(codec, mostCompressed)];
    const best = bounded.reduce((one, other) => (other.usPerPage < one.usPerPage - NOTHING_US ? other : one), raw);
    return { codec, curve, breakEven, paysUntil, best };
  }

  // Bytes of memory that an uncompressed cache needs for the same speed, or null.
  rawMemoryFor(usPerPage) {
    const over = (log) => this.raw(Math.exp(log)).usPerPage - usPerPage;
    let [low, high] = [Math.log(this.options.pageBytes), Math.log(2 * this.options.dataBytes + 1048576)];
    if (over(high) > 0) return null;
    for (let turn = 0; turn < 50; turn += 1) {
      const middle = (low + high) / 2;
      if (over(middle) > 0) low = middle;
      else high = middle;
    }
    return Math.exp(high);
  }
}
