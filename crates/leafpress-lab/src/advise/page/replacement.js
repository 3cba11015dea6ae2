// Which accesses hit which space: crates/leafpress-lab/src/model/replacement.rs, under the same names. Room is { rawPages, compressedPages }.

function ideal(mass, room) {
  return twoLevels(mass(room.rawPages), mass(room.rawPages + room.compressedPages), room, 0);
}

function lru(hits, room) {
  return twoLevels(hits(room.rawPages), hits(room.rawPages + room.compressedPages), room, 1);
}

function twoLevels(raw, both, room, restored) {
  const compressedHits = Math.max(both - raw, 0);
  const restorations = compressedHits * restored;
  const compressions = room.compressedPages > 0 ? Math.max(1 - raw - compressedHits, 0) + restorations : 0;
  return { rawHits: raw, compressedHits, compressions, restorations };
}

function lruHitRatio(tiers, room) {
  const all = tiers.reduce((sum, tier) => sum + tier.pages, 0);
  if (room >= all) return 1;
  if (room <= 0) return 0;
  const cached = (time, tier) => tier.pages * -Math.expm1(-tier.rate * time);
  const over = (timeLog) => tiers.reduce((sum, tier) => sum + cached(Math.exp(timeLog), tier), 0) - room;
  const time = Math.exp(root(over, TIME_LOGS));
  return tiers.reduce((sum, tier) => sum + tier.rate * cached(time, tier), 0);
}

const TIME_LOGS = [-12, 60];

function root(figure, [low, high]) {
  let atLow = figure(low);
  let atHigh = figure(high);
  if (atLow >= 0) return low;
  if (atHigh <= 0) return high;
  let kept = 0;
  for (let turn = 0; turn < 200; turn += 1) {
    const next = turn % 3 === 2 ? (low + high) / 2 : (low * atHigh - high * atLow) / (atHigh - atLow);
    const atNext = figure(next);
    if (atNext < 0) {
      low = next;
      atLow = atNext;
      atHigh = kept === 1 ? atHigh / 2 : atHigh;
      kept = 1;
    } else {
      high = next;
      atHigh = atNext;
      atLow = kept === -1 ? atLow / 2 : atLow;
      kept = -1;
    }
    if (high - low < 1e-9 || atNext === 0) break;
  }
  return (low + high) / 2;
}

const MAX_POPULARITY = 63;
const HALVED = Math.floor(MAX_POPULARITY / 2) + 1;
const HITS_LOGS = [-12, 4, 0.05];

// `Clock` is written for speed where the Rust is written for reading: its inner sums are worked out a hundred thousand times for a curve. Logarithms
// are added where times are multiplied, what hangs on one round only is kept while the other is looked for, and nothing is allocated.
class Clock {
  constructor(restoreAfter) {
    restoreAfter = clamp(restoreAfter, 1, MAX_POPULARITY);
    const [from, to, step] = HITS_LOGS;
    const steps = Math.round((to - from) / step);
    const stays = Array.from({ length: steps + 1 }, (_, at) => stay(Math.exp(from + at * step), restoreAfter));
    const table = (of) => Float64Array.from(stays, of);
    this.restoreAfter = restoreAfter;
    this.rawReadLogs = table((stay) => Math.log(stay.rawRead));
    this.rawRestoredLogs = table((stay) => Math.log(stay.rawRestored));
    this.blocks = table((stay) => stay.blocks);
    this.compressed = table((stay) => stay.compressed);
    this.restored = table((stay) => stay.restored);
  }

  events(tiers, room) {
    const asked = tiers.filter((tier) => tier.rate > 0);
    if (room.rawPages >= asked.reduce((sum, tier) => sum + tier.pages, 0)) {
      return { rawHits: 1, compressedHits: 0, compressions: 0, restorations: 0 };
    }
    const sums = {
      pages: Float64Array.from(asked, (tier) => tier.pages),
      rates: Float64Array.from(asked, (tier) => tier.rate),
      logs: Float64Array.from(asked, (tier) => Math.log(tier.rate)),
      // Rounds in the raw space, of a page that was read and of one that was restored.
      read: new Float64Array(asked.length),
      restored: new Float64Array(asked.length),
    };
    const totalAt = (rawLog) => {
      this.raws(sums, rawLog);
      const rawTime = Math.exp(rawLog);
      let logLog = -Infinity;
      if (room.compressedPages > 0) {
        logLog = root((log) => this.total(sums, rawTime, log).blocks - room.compressedPages, TIME_LOGS);
      }
      return this.total(sums, rawTime, logLog);
    };
    let rawLog = -Infinity;
    if (room.rawPages > 0) {
      rawLog = root((log) => totalAt(log).raw - room.rawPages, TIME_LOGS);
    }
    const total = totalAt(rawLog);
    return {
      rawHits: clamp(total.rawHits, 0, 1),
      compressedHits: clamp(total.compressedHits, 0, 1 - clamp(total.rawHits, 0, 1)),
      compressions: total.compressions,
      restorations: total.restorations,
    };
  }

  // What each tier does in the raw space, whose round has this logarithm.
  raws(sums, rawLog) {
    const [from, to, step] = HITS_LOGS;
    const [reads, restoreds] = [this.rawReadLogs, this.rawRestoredLogs];
    const last = reads.length - 1;
    for (let tier = 0; tier < sums.logs.length; tier += 1) {
      const log = sums.logs[tier] + rawLog;
      const at = log >= to ? last : Math.max((log - from) / step, 0);
      const before = Math.min(Math.floor(at), last - 1);
      const part = at - before;
      sums.read[tier] = Math.exp(reads[before] + (reads[before + 1] - reads[before]) * part);
      sums.restored[tier] = Math.exp(restoreds[before] + (restoreds[before + 1] - restoreds[before]) * part);
    }
  }

  // Sums over all pages, for a round of the log of this logarithm; -Infinity is no log.
  total(sums, rawTime, logLog) {
    const [from, to, step] = HITS_LOGS;
    const last = this.blocks.length - 1;
    const logTime = Math.exp(logLog);
    const total = { raw: 0, blocks: 0, rawHits: 0, compressedHits: 0, compressions: 0, restorations: 0 };
    for (let tier = 0; tier < sums.logs.length; tier += 1) {
      const rate = sums.rates[tier];
      let restored = 0;
      let compressed = 0;
      let blocks = 0;
      if (logTime > 0) {
        const log = sums.logs[tier] + logLog;
        if (log >= to) {
          restored = 1;
          compressed = this.restoreAfter / (rate * logTime);
          blocks = 1;
        } else {
          const at = Math.max((log - from) / step, 0);
          const before = Math.min(Math.floor(at), last - 1);
          const part = at - before;
          restored = this.restored[before] + (this.restored[before + 1] - this.restored[before]) * part;
          compressed = this.compressed[before] + (this.compressed[before + 1] - this.compressed[before]) * part;
          blocks = this.blocks[before] + (this.blocks[before + 1] - this.blocks[before]) * part;
        }
        restored = Math.min(restored, 1 - 1e-12);
      }
      const times = 1 / (1 - restored);
      const raw = rawTime * (sums.read[tier] + (times - 1) * sums.restored[tier]);
      const cycle = 1 / rate + raw + times * compressed * logTime;
      const part = sums.pages[tier] / cycle;
      total.raw += part * raw;
      total.blocks += part * times * blocks * logTime;
      total.rawHits += part * raw * rate;
      total.compressedHits += part * times * compressed * logTime * rate;
      if (logTime > 0) {
        total.compressions += part * times;
        total.restorations += part * (times - 1);
      }
    }
    return total;
  }
}

function stay(hits, restoreAfter) {
  const chance = poisson(hits);
  const raw = new Chain(HALVED);
  const next = (before, added) => Math.min(before + added, MAX_POPULARITY);
  for (let before = 0; before < HALVED; before += 1) {
    raw.rewards[before] = [1, 0, 0];
    chance.forEach((chance, added) => {
      const popularity = next(before, added);
      if (popularity === 0) raw.ends[before] += chance;
      else raw.steps[before][popularity >> 1] += chance;
    });
  }
  const rounds = raw.solve();
  const restored = chance.reduce((sum, chance, added) => sum + chance * rounds[next(restoreAfter, added) >> 1][0], 0);
  const log = new Chain(HALVED);
  for (let before = 0; before < Math.min(HALVED, restoreAfter); before += 1) {
    const needed = restoreAfter - before;
    const sum = (chances) => chances.reduce((sum, chance) => sum + chance, 0);
    const missed = sum(chance.slice(0, needed));
    const hitMore = sum(chance.slice(Math.min(needed + 1, chance.length)));
    const isRestored = Math.max(1 - missed, 0);
    const lived = missed + needed * hitMore / hits;
    log.rewards[before] = [1, Math.min(lived, 1), isRestored];
    log.ends[before] = isRestored;
    chance.slice(0, needed).forEach((chance, added) => {
      const popularity = before + added;
      if (popularity === 0) log.ends[before] += chance;
      else log.steps[before][popularity >> 1] += chance;
    });
  }
  const inLog = log.solve()[0];
  return {
    rawRead: rounds[0][0],
    rawRestored: 1 + restored,
    blocks: inLog[0],
    compressed: inLog[1],
    restored: Math.min(inLog[2], 1),
  };
}

function poisson(mean) {
  const chances = new Array(MAX_POPULARITY + 2).fill(0);
  let [chance, sum] = [Math.exp(-mean), 0];
  for (let hits = 0; hits < chances.length; hits += 1) {
    chances[hits] = chance;
    sum += chance;
    chance *= mean / (hits + 1);
  }
  chances[MAX_POPULARITY + 1] += Math.max(1 - sum, 0);
  return chances;
}

const FOR_EVER = 1e15;

class Chain {
  constructor(states) {
    this.steps = Array.from({ length: states }, () => new Float64Array(states));
    this.ends = new Array(states).fill(0);
    this.rewards = Array.from({ length: states }, () => [0, 0, 0]);
  }

  solve() {
    const states = this.ends.length;
    const leaves = new Array(states).fill(0);
    for (let last = states - 1; last >= 0; last -= 1) {
      leaves[last] = this.ends[last];
      let out = 0;
      for (let to = 0; to < last; to += 1) out += this.steps[last][to];
      leaves[last] += out;
      if (leaves[last] <= 0) continue;
      for (let state = 0; state < last; state += 1) {
        const times = this.steps[state][last] / leaves[last];
        if (times === 0) continue;
        const [steps, onwards] = [this.steps[state], this.steps[last]];
        for (let to = 0; to < last; to += 1) steps[to] += times * onwards[to];
        this.ends[state] += times * this.ends[last];
        for (let reward = 0; reward < 3; reward += 1) this.rewards[state][reward] += times * this.rewards[last][reward];
      }
    }
    const solved = [];
    for (let state = 0; state < states; state += 1) {
      const expected = [0, 0, 0];
      if (leaves[state] > 0) {
        for (let reward = 0; reward < 3; reward += 1) {
          let below = 0;
          for (let to = 0; to < solved.length; to += 1) below += solved[to][reward] * this.steps[state][to];
          expected[reward] = Math.min((this.rewards[state][reward] + below) / leaves[state], FOR_EVER);
        }
      }
      solved.push(expected);
    }
    return solved;
  }
}
