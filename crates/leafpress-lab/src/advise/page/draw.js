// Draws the page: its figures, its sentence and its charts.

const hueOf = (page, name) => page.state.codecs.find((codec) => codec.name === name)?.hue ?? NO_HUE;
const NO_HUE = "#7d8796";
const DEVICE_HUE = "#12989f";
const percentAxis = (text) => ({ label: text, format: (share) => percentOf(share, 2), tick: (share) => percentOf(share, 0), to: 1 });
const usAxis = { label: "us per page", format: brief };
const bytesAxis = (label, [from, to]) => ({ label, from, to, log: true, bytes: true, format: bytesText });
const timesText = (times) => (times >= 9.95 ? times.toFixed(0) : times.toFixed(times >= 1.995 ? 1 : 2));

function compared(here, raw) {
  if (Math.abs(here / raw - 1) < 0.005) return "as fast as uncompressed";
  return here < raw ? `${timesText(raw / here)} times as fast` : `${timesText(here / raw)} times as slow`;
}

function setFigure(id, value, text) {
  const figure = byId(id);
  figure.value = String(value ?? "");
  figure.textContent = text;
}

// Methods of Page.
const drawing = {
  showFigures() {
    const { here, raw, worth } = this;
    setFigure("f-hit", here.hitRatio, percentOf(here.hitRatio));
    setFigure("f-us", here.usPerPage, brief(here.usPerPage));
    setFigure("f-pages", here.pagesPerSecond, brief(here.pagesPerSecond));
    setFigure("f-memory", worth, worth === null ? "none" : bytesText(worth));
    byId("a-hit").textContent = `${percentOf(raw.hitRatio)} uncompressed`;
    byId("a-us").textContent = `${brief(raw.usPerPage)} without${this.rawPageText()}: ${compared(here.usPerPage, raw.usPerPage)}`;
    byId("a-pages").textContent = `${brief(raw.pagesPerSecond)} uncompressed`;
    byId("values").textContent = this.valuesText();
  },

  valuesText() {
    const { options } = this.model;
    const { now } = this.state;
    const words = [
      `${this.costs.name}, ${plain(now.share)}% of memory compressed`,
      `${bytesText(options.memoryBytes)} of memory for ${bytesText(options.dataBytes)} of data in pages of ${bytesText(options.pageBytes)}`,
      ...this.wantsText(),
      `access ${this.accessText()}`,
      `device ${plain(options.deviceUs)} us per read`,
      `replacement ${options.replacement}`,
      `${options.workers} worker${options.workers === 1 ? "" : "s"}`,
    ];
    if (options.deviceIops !== null) words.push(`at most ${brief(options.deviceIops)} reads/s`);
    if (now.time !== 100) words.push(`codec times ${plain(now.time)}% of the measured`);
    return words.join(" · ");
  },

  // The size at which raw pages are best, if it differs.
  rawPageText() {
    const { pageBytes } = this.rawModel.options;
    return pageBytes === this.model.options.pageBytes ? "" : `, in pages of ${bytesText(pageBytes)}`;
  },

  wantsText() {
    const { pageBytes, accessBytes } = this.model.options;
    if (accessBytes === pageBytes) return [];
    const { apart } = this.model;
    return [`an access needs ${bytesText(accessBytes)}${apart > 1 ? `, i.e. ${apart} pages` : ""}`];
  },

  accessText() {
    return this.grid.access(this.model.options.access).label;
  },

  // The sentence, updated once all is computed, also for screen readers.
  conclude() {
    const { here, raw } = this;
    const found = this.outcomes.find(({ codec }) => codec.name === this.costs.name);
    const { breakEven, best } = found;
    const until = found.paysUntil > 0 && found.paysUntil < 1 ? ` up to ${percentOf(found.paysUntil)}` : "";
    const from = { never: "no share of the memory makes it pay", at_once: `it pays from the smallest share ${until ? "" : "on"}${until.trim()}` }[breakEven.kind]
      ?? `it pays from ${percentOf(breakEven.share)} of the memory ${until ? "" : "on"}${until.trim()}`;
    const least = this.input.within_error;
    const gain = 1 - best.usPerPage / raw.usPerPage;
    const little = gain < least ? `, a gain of ${percentOf(gain)}, which is within the error of ${percentOf(least, 0)}` : "";
    const most = best.share > 0 ? `, best at ${plain(100 * best.share)}% with ${brief(best.usPerPage)} us per page${little}` : "";
    const now = this.share > 0
      ? `${this.costs.name} on ${plain(this.state.now.share)}% of the memory: ${brief(here.usPerPage)} us per page, ${compared(here.usPerPage, raw.usPerPage)}.`
      : `No compression: ${brief(raw.usPerPage)} us per page.`;
    const other = this.outcomes.reduce((one, other) => (other.best.usPerPage < one.best.usPerPage ? other : one));
    const winner = other !== found && other.best.usPerPage < best.usPerPage * (1 - least)
      ? ` ${other.codec.name} would do better: ${brief(other.best.usPerPage)} us at ${plain(100 * other.best.share)}%.`
      : "";
    byId("conclusion").textContent = `${now} With ${this.costs.name} ${from}${most}.${winner}`;
  },

  shareAxis() {
    return { label: "memory for compressed pages, %", from: 0, to: 100, format: plain };
  },

  cursor() {
    return { x: this.state.now.share, text: `${plain(this.state.now.share)}%` };
  },

  // A codec's points over the shares.
  overShares(curve, of) {
    return curve.map((point) => [100 * point.share, of(point)]);
  },

  drawShares() {
    const { raw } = this;
    const hue = (codec) => hueOf(this, codec.name);
    const level = (of) => ({ name: `no compression${this.rawPageText()}`, colour: NO_HUE, dash: DASHED, points: [[0, of(raw)], [100, of(raw)]] });
    const curves = (of) => this.outcomes.map(({ codec, curve }) => ({ name: codec.name, colour: hue(codec), points: this.overShares(curve, of) }));
    const lines = [...curves((point) => point.usPerPage), level((point) => point.usPerPage)];
    if (this.model.options.replacement !== "ideal") {
      lines.push({ name: `${this.costs.name}, ideal replacement`, colour: hue(this.costs), dash: DOTTED, thin: true, points: this.overShares(this.bound, (point) => point.usPerPage) });
    }
    this.charts.us.draw({
      title: "Microseconds per page by the share of memory that is compressed",
      note: `A sixteenth of the memory stays raw for pages in transit: the best share is at most ${(100 * this.input.most_compressed).toFixed(1)}%.`,
      x: this.shareAxis(), y: usAxis, tall: true, lines, marks: this.shareMarks(), cursor: this.cursor(),
    });
    const hits = [...curves((point) => point.hitRatio), level((point) => point.hitRatio)];
    if (this.model.options.access !== EVEN) {
      hits.push({ name: `${this.costs.name}, uniform access`, colour: hue(this.costs), dash: DOTTED, thin: true, points: this.overShares(this.even, (point) => point.hitRatio) });
    }
    this.charts.hit.draw({ title: "Hit ratio", x: this.shareAxis(), y: percentAxis("hit ratio"), lines: hits, marks: [this.hereMark((point) => point.hitRatio)], cursor: this.cursor() });
    this.charts.free.draw({
      title: "If compression took no time",
      note: "Upper bound for an accelerator: the same ratios at no cost.",
      x: this.shareAxis(), y: usAxis, lines: [...curves((point) => point.freeUs), level((point) => point.usPerPage)], cursor: this.cursor(),
    });
  },

  hereMark(of) {
    const colour = this.share > 0 ? hueOf(this, this.costs.name) : NO_HUE;
    return { x: this.state.now.share, y: of(this.here), shape: "dot", large: true, colour, key: "chosen", text: "chosen" };
  },

  shareMarks() {
    const marks = [];
    for (const { codec, breakEven, best } of this.outcomes) {
      const colour = hueOf(this, codec.name);
      if (breakEven.kind === "share") {
        marks.push({ x: 100 * breakEven.share, y: this.raw.usPerPage, shape: "ring", colour, key: "pays from here on", text: `${codec.name} pays from ${percentOf(breakEven.share, 2)} on` });
      }
      if (best.share > 0) {
        marks.push({ x: 100 * best.share, y: best.usPerPage, shape: "diamond", colour, key: "best share", text: `${codec.name} is best at ${plain(100 * best.share)}%: ${brief(best.usPerPage)} us` });
      }
    }
    marks.push(this.hereMark((point) => point.usPerPage));
    return marks;
  },

  drawMemory() {
    const drawn = this.memory.filter(({ codec }) => !codec || this.share > 0);
    const lines = drawn.map(({ codec, points }) => ({
      name: codec ? codec.name : `no compression${this.rawPageText()}`,
      colour: codec ? hueOf(this, codec.name) : NO_HUE,
      dash: codec ? undefined : DASHED,
      points,
    }));
    const memory = this.model.options.memoryBytes;
    const all = lines[0].points.map((point) => point[0]);
    this.charts.memory.draw({
      title: `Microseconds per page by memory${this.share > 0 ? `, ${plain(this.state.now.share)}% of it compressed` : ""}`,
      x: bytesAxis("memory", [all[0], all[all.length - 1]]), y: usAxis, lines,
      marks: [{ ...this.hereMark((point) => point.usPerPage), x: memory }],
      cursor: { x: memory, text: bytesText(memory) },
    });
  },

  drawSizes() {
    const name = ({ even, compressed }) => `${even ? "even" : this.accessText()}${compressed ? `, ${this.costs.name}` : ""}`;
    const isEven = this.model.options.access === EVEN;
    const wanted = this.sizes.filter((line) => !(line.even && isEven) && !(line.compressed && this.share === 0));
    const lines = wanted.map((line) => ({
      name: name(line),
      colour: line.compressed ? hueOf(this, this.costs.name) : NO_HUE,
      dash: line.even ? DOTTED : undefined,
      thin: line.even,
      points: line.points,
    }));
    const data = this.model.options.dataBytes;
    const all = lines[0]?.points.map((point) => point[0]) ?? [data, data];
    this.charts.size.draw({
      title: `Hit ratio by data size, ${bytesText(this.model.options.memoryBytes)} of memory`,
      x: bytesAxis("data", [all[0], all[all.length - 1]]), y: percentAxis("hit ratio"), lines,
      marks: [{ ...this.hereMark((point) => point.hitRatio), x: data }],
      cursor: { x: data, text: bytesText(data) },
    });
  },

  // Measurements do not depend on the adjustable state.
  drawMeasured() {
    const { input, state, charts } = this;
    const sizes = [...new Set(state.codecs.flatMap((codec) => codec.blocks.map((block) => block.block_bytes)))].sort((one, other) => one - other);
    const x = { label: "block", steps: sizes.map(bytesText) };
    const [least, most] = [state.threads[0], state.threads[state.threads.length - 1]];
    const line = (codec, threads, of) => ({
      name: state.threads.length > 1 ? `${codec.name}, ${threads} thread${threads === 1 ? "" : "s"}` : codec.name,
      colour: codec.hue,
      dots: "dot",
      dash: threads === least ? undefined : DASHED,
      thin: threads !== least,
      points: codec.blocks.filter((block) => block.threads === threads).map((block) => [sizes.indexOf(block.block_bytes), of(block)]).sort((one, other) => one[0] - other[0]),
    });
    const times = (of) => [...new Set([least, most])].flatMap((threads) => state.codecs.map((codec) => line(codec, threads, of)));
    const memcpy = {
      name: "memcpy", colour: NO_HUE, dash: DASHED, dots: "square",
      points: input.memcpy.map((copy) => [sizes.indexOf(copy.block_bytes), copy.us]).filter((point) => point[0] >= 0),
    };
    charts.ratio.draw({
      title: "Compression ratio", x, y: { label: "raw over stored bytes", format: (ratio) => ratio.toFixed(ratio < 10 ? 2 : 1).replace(/\.?0+$/, "") },
      lines: state.codecs.map((codec) => ({ ...line(codec, least, (block) => block.ratio), name: codec.name })),
    });
    charts.compress.draw({ title: "Compressing a block", x, y: { label: "us per block", log: true, format: brief }, lines: [...times((block) => block.compress_us), memcpy] });
    charts.decompress.draw({ title: "Decompressing a block", x, y: { label: "us per block", log: true, format: brief }, lines: [...times((block) => block.decompress_us), memcpy] });
    const blocks = input.device.map((row) => row.block_bytes);
    const deviceX = { label: "block", steps: blocks.map(bytesText) };
    const of = (name, colour, dots, figure) => ({ name, colour, dots, points: input.device.map((row, at) => [at, figure(row) ?? NaN]) });
    charts.iops.draw({ title: "Device: reads per second", x: deviceX, y: { label: "reads/s", format: brief }, lines: [of("reads/s", DEVICE_HUE, "dot", (row) => row.iops)] });
    charts.rate.draw({ title: "Device: megabytes per second", x: deviceX, y: { label: "MB/s (10^6 bytes)", format: brief }, lines: [of("MB/s", DEVICE_HUE, "dot", (row) => row.mb_per_s)] });
    charts.latency.draw({
      title: "Device: latency", x: deviceX, y: { label: "us per read", log: true, format: brief },
      lines: [
        of("p99", "#c23f9a", "triangle", (row) => row.p99_us),
        of("mean", DEVICE_HUE, "dot", (row) => row.mean_us),
        of("p50", "#5b62d8", "square", (row) => row.p50_us),
      ],
    });
    this.drawVerify();
  },

  // Predicted vs measured, with the line of equality.
  drawVerify() {
    const rows = this.input.verify;
    const figures = rows.flatMap((row) => [row.predicted_us, row.measured_us]).filter((us) => Number.isFinite(us) && us > 0);
    const most = Math.max(...figures, 1e-9) * 1.05;
    const names = [...new Set(rows.map((row) => row.codec))];
    const lines = names.map((name) => ({
      name, colour: hueOf(this, name), dots: "dot", only: true,
      points: rows.filter((row) => row.codec === name).map((row) => [row.predicted_us, row.measured_us]),
    }));
    if (rows.length > 0) lines.push({ name: "agreement", colour: NO_HUE, dash: DASHED, thin: true, points: [[0, 0], [most, most]] });
    this.charts.verify.draw({
      title: "Microseconds per page: predicted and measured", x: { label: "predicted, us per page", from: 0, to: most, format: brief },
      y: { label: "measured, us per page", to: most, format: brief }, lines,
    });
  },
};
