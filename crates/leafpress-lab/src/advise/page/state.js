// The adjustable state, how it is read and written (also in the page's address), and the model's options derived from it.

// `input` is the page's input, with the field names of crates/leafpress-lab/src/advise/page/input.rs.

const LARGEST_BYTES = 2 ** 60;

// Bounds are those of crates/leafpress-lab/src/model/options.rs, and of the grid: memory and data range from a hundredth to
// a hundred times the initial ones.
function fieldsOf(input, grid) {
  const bytes = { parse: parseBytes, text: bytesText, log: true };
  const number = { parse: parseNumber, text: (figure) => String(Number(figure.toPrecision(4))) };
  const us = { ...number, log: true };
  return {
    share: { ...number, least: 0, most: 100 },
    memory: { ...bytes, least: Math.max(65536, input.page_bytes, grid.memories[0]), most: Math.min(LARGEST_BYTES, grid.memories[grid.memories.length - 1]) },
    data: { ...bytes, least: Math.max(input.page_bytes, input.data_bytes / 100), most: Math.min(LARGEST_BYTES, input.data_bytes * 100) },
    device: { ...us, least: 0, most: 1e9 },
    time: { ...number, least: 0, most: 1000 },
    iops: { ...number, least: 1e-3, most: 1e12, none: true },
    workers: { ...number, least: 1, most: 1000000, whole: true },
    hit: { ...number, least: 0, most: 1e6 },
    background: { ...number, least: 0, most: 100 },
  };
}

function parseNumber(text) {
  const word = text.trim().replace(/,(?=\d{3}\b)/g, "").replace(/ ?(%|us|µs)$/, "");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(word) ? Number(word) : NaN;
}

// As in crates/leafpress-lab/src/core/bytes.rs: powers of 1000 with B alone, else of 1024.
function parseBytes(text) {
  const found = /^(\d+\.?\d*|\.\d+)([kmgtpe]?)(i?b|bytes)?$/i.exec(text.trim().replace(/[\s,]/g, ""));
  if (!found) return NaN;
  const power = " kmgtpe".indexOf(found[2].toLowerCase() || " ");
  const base = (found[3] ?? "").toLowerCase() === "b" ? 1000 : 1024;
  return Math.round(Number(found[1]) * base ** power);
}

class State {
  constructor(input, grid) {
    this.input = input;
    this.grid = grid;
    this.fields = fieldsOf(input, grid);
    this.codecs = input.codecs.map((codec, at) => ({ ...codec, hue: input.hues[at] }));
    this.pages = pageSizes(input);
    this.threads = [...new Set(input.codecs.flatMap((codec) => codec.blocks.map((block) => block.threads)))].sort((one, other) => one - other);
    const choice = input.choice ?? { codec: input.codecs[0].name, share_pct: 0 };
    this.first = {
      codec: choice.codec,
      share: choice.share_pct,
      memory: input.memory_bytes,
      data: input.data_bytes,
      device: input.device_us,
      access: this.grid.accesses[0].name,
      page: input.page_bytes,
      wants: input.access_bytes,
      threads: input.threads,
      time: 100,
      iops: input.device_iops,
      workers: input.workers,
      hit: input.hit_us,
      background: input.background_pct,
      replacement: input.replacement,
    };
    this.now = { ...this.first };
  }

  // Whether the value was valid.
  set(key, value) {
    const field = this.fields[key];
    if (field) {
      if (value === null && field.none) this.now[key] = null;
      else if (!Number.isFinite(value) || value < field.least || value > field.most) return false;
      else this.now[key] = field.whole ? Math.round(value) : value;
    } else if (key === "page") {
      if (!this.pages.includes(value)) return false;
      this.setPage(value);
    } else if (key === "wants") {
      if (!this.input.wants.includes(value)) return false;
      this.now.wants = value;
    } else if (key === "codec") {
      if (!this.codecs.some((codec) => codec.name === value)) return false;
      this.now.codec = value;
    } else if (key === "threads") {
      if (!this.threads.includes(value)) return false;
      this.now.threads = value;
    } else {
      const choices = { access: this.grid.accesses.map((access) => access.name), replacement: this.replacements() };
      if (!choices[key]?.includes(value)) return false;
      this.now[key] = value;
    }
    return true;
  }

  // Latency of pages of another size: scaled as measured.
  setPage(page) {
    [this.now.device, this.now.iops, this.now.page] = [this.deviceUs(page), this.deviceIops(page), page];
  }

  // Read latency of a page of this size: the command's, scaled by the reader's change.
  deviceUs(page) {
    const us = (bytes) => this.input.reads.find((read) => read.block_bytes === bytes)?.us;
    const [before, after] = [us(this.now.page), us(page)];
    if (!(before > 0 && after > 0)) return this.now.device;
    return this.now.device === before ? after : Number((this.now.device * after / before).toPrecision(6));
  }

  deviceIops(page) {
    const iops = (bytes) => this.input.device.find((row) => row.block_bytes === bytes)?.iops;
    const [before, after] = [iops(this.now.page), iops(page)];
    if (this.now.iops === null || !(before > 0 && after > 0)) return this.now.iops;
    const there = Number((this.now.iops * after / before).toPrecision(6));
    return Math.abs(there / this.first.iops - 1) < 1e-4 ? this.first.iops : there;
  }

  reset() {
    this.now = { ...this.first };
  }

  // Differences from the initial state, as `key=value&..`.
  hash() {
    const changed = Object.entries(this.now).filter(([key, value]) => value !== this.first[key]);
    return changed.map(([key, value]) => `${key}=${encodeURIComponent(value ?? "none")}`).join("&");
  }

  // Invalid values keep their initial state.
  readHash(hash) {
    this.reset();
    const words = new URLSearchParams(hash.replace(/^#/, ""));
    // The device's figures, if present, are those for this page.
    const page = Number(words.get("page") ?? NaN);
    if (this.pages.includes(page)) this.set("page", page);
    for (const [key, text] of words) {
      if (key === "page" || !Object.hasOwn(this.first, key)) continue;
      const isNumber = this.fields[key] || key === "threads" || key === "wants";
      this.set(key, isNumber ? (text === "none" ? null : Number(text)) : text);
    }
  }

  replacements() {
    return this.grid.accesses[0].replacements.map((of) => of.replacement);
  }

  // Whether the access is a trace, which determines the size of the data.
  traced() {
    return this.input.traced && this.now.access === this.first.access;
  }

  // The codec's cost for a page of this size; null if not measured.
  costs(codec, page) {
    const blocks = codec.blocks.filter((block) => block.block_bytes === page);
    const block = blocks.find((block) => block.threads === this.now.threads) ?? blocks[0];
    if (!block) return null;
    const times = this.now.time / 100;
    return {
      name: codec.name,
      ratio: Math.max(block.ratio, 1),
      compressUs: block.compress_us * times,
      decompressUs: block.decompress_us * times,
    };
  }

  // Sizes that raw pages may have, as in input.rs: at least the access size, or the page's own.
  rawPages() {
    const { now, input } = this;
    if (input.traced || now.page < now.wants || input.reads.length === 0) return [now.page];
    const most = Math.min(now.memory, now.data);
    return this.pages.filter((page) => page === now.page || (page <= most && page % now.wants === 0));
  }

  // The model's options, with pages of this size.
  options(page = this.now.page) {
    const now = this.now;
    return {
      dataBytes: this.traced() ? this.grid.accesses[0].replacements[0].pages[0] * page : Math.max(now.data, page, now.wants),
      memoryBytes: Math.max(now.memory, page),
      pageBytes: page,
      accessBytes: this.input.traced ? page : now.wants,
      codecs: this.codecs.map((codec) => this.costs(codec, page)).filter(Boolean),
      access: now.access,
      deviceUs: this.deviceUs(page),
      deviceIops: this.deviceIops(page),
      hitUs: now.hit,
      backgroundPct: now.background,
      workers: now.workers,
      replacement: now.replacement,
      mostCompressed: this.input.most_compressed,
    };
  }
}

// Page sizes that all codecs were measured with.
function pageSizes(input) {
  const sizes = input.codecs.map((codec) => new Set(codec.blocks.map((block) => block.block_bytes)));
  return [...sizes[0]].filter((size) => sizes.every((other) => other.has(size))).sort((one, other) => one - other);
}
