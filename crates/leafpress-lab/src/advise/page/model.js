// The kernel of the model: crates/leafpress-lab/src/model/{formulas,access}.rs line by line, under the same names. replacement.js and evaluate.js
// are the rest of it. What the formulas are and where they come from is said in the Rust. A test holds both to the same numbers.

const clamp = (figure, least, most) => Math.min(Math.max(figure, least), most);

// ---- formulas.rs

function shareThatFits(memoryBytes, compressed, ratio, dataBytes) {
  if (dataBytes <= 0) return 1;
  return clamp((memoryBytes * (1 - compressed) + memoryBytes * compressed * ratio) / dataBytes, 0, 1);
}

function chanceCompressed(compressed, ratio) {
  const pages = (1 - compressed) + compressed * ratio;
  return pages > 0 ? compressed * ratio / pages : 0;
}

function publishedUs(hitRatio, chance, compressUs, decompressUs, deviceUs) {
  return (compressUs + decompressUs) * hitRatio * chance + (deviceUs + compressUs) * (1 - hitRatio);
}

function publishedRawUs(hitRatio, deviceUs) {
  return deviceUs * (1 - hitRatio);
}

// Events: { rawHits, compressedHits, compressions, restorations }, each for one access.
function hitRatioOf(events) {
  return clamp(events.rawHits + events.compressedHits, 0, 1);
}

// Costs: { hitUs, deviceUs, compressUs, decompressUs, background }.
function correctedUs(events, costs) {
  return costs.hitUs
    + events.compressedHits * costs.decompressUs
    + events.compressions * costs.compressUs * (1 - costs.background)
    + (1 - hitRatioOf(events)) * costs.deviceUs;
}

function pagesPerSecond(usPerPage, workers, hitRatio, deviceIops) {
  const asked = usPerPage > 0 ? workers * 1e6 / usPerPage : Infinity;
  return deviceIops !== null && hitRatio < 1 ? Math.min(asked, deviceIops / (1 - hitRatio)) : asked;
}

const EXACT_RANKS = 32;

function harmonic(ranks, theta) {
  const exact = Math.min(ranks, EXACT_RANKS);
  let sum = 0;
  let rank = 1;
  while (rank <= exact) {
    sum += Math.pow(rank, -theta);
    rank += 1;
  }
  if (ranks <= EXACT_RANKS) {
    return sum + Math.max(ranks - (rank - 1), 0) * Math.pow(rank, -theta);
  }
  const [from, to, power] = [EXACT_RANKS + 0.5, ranks + 0.5, 1 - theta];
  const correction = theta / 24 * (Math.pow(to, -theta - 1) - Math.pow(from, -theta - 1));
  return sum + (Math.pow(to, power) - Math.pow(from, power)) / power + correction;
}

// A law: { kind: "uniform" }, { kind: "hotset", keysPct, operationsPct }, { kind: "self-similar", h }, { kind: "zipfian", theta }.
function massOfHottest(law, pages, fits) {
  fits = clamp(fits, 0, 1);
  switch (law.kind) {
    case "hotset": {
      const [hot, accesses] = hotter(law.keysPct / 100, law.operationsPct / 100);
      return accesses * Math.min(fits, hot) / hot + (1 - accesses) * Math.max(fits - hot, 0) / (1 - hot);
    }
    case "self-similar":
      return Math.pow(fits, Math.log(1 - law.h) / Math.log(law.h));
    case "zipfian":
      return Math.min(harmonic(fits * pages, law.theta) / harmonic(pages, law.theta), 1);
    default:
      return fits;
  }
}

function hotter(pages, accesses) {
  return accesses < pages ? [1 - pages, 1 - accesses] : [pages, accesses];
}

const TIER_GROWTH = 1.12;

function tiers(law, pages) {
  const ends = [];
  if (law.kind === "hotset") {
    ends.push(hotter(law.keysPct / 100, law.operationsPct / 100)[0] * pages);
  } else if (law.kind !== "uniform") {
    let end = 1;
    while (end < pages) {
      ends.push(end);
      end = end < EXACT_RANKS ? end + 1 : end * TIER_GROWTH;
    }
  }
  ends.push(pages);
  const found = [];
  let from = 0;
  let mass = 0;
  for (const end of ends) {
    const reached = massOfHottest(law, pages, end / pages);
    if (end > from) {
      found.push({ pages: end - from, rate: Math.max(reached - mass, 0) / (end - from) });
    }
    [from, mass] = [end, reached];
  }
  return found;
}

function massOfTiers(tiers, pages) {
  let left = Math.max(pages, 0);
  let mass = 0;
  for (const tier of tiers) {
    const taken = Math.min(left, tier.pages);
    mass += taken * tier.rate;
    left -= taken;
  }
  return mass;
}

// ---- access.rs and reuse.rs. A trace is { kind: "trace", name, pages, tiers, curve }, its curve [[pages, hit ratio], ..], rising.

function accessTiers(access, pages) {
  return access.kind === "trace" ? access.tiers : tiers(access, pages);
}

function accessMass(access, pages, hottest) {
  return access.kind === "trace" ? massOfTiers(access.tiers, hottest) : massOfHottest(access, pages, hottest / pages);
}

function accessLruHits(access, tiers, room) {
  return access.kind === "trace" ? reuseHitRatio(access.curve, room) : lruHitRatio(tiers, room);
}

function reuseHitRatio(curve, pages) {
  let [low, high] = [0, curve.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve[middle][0] <= pages + 1e-6) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : curve[low - 1][1];
}
