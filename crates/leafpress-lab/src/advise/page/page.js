// The page: recomputes the figures after a change, and redraws what changed.

// Points of the charts over memory and over data, each from a tenth to ten times the current value.
const SPREAD = Array.from({ length: 25 }, (_, at) => 10 ** ((at - 12) / 12));
const DASHED = "7 5";
const DOTTED = "3 4";
const EVEN = "uniform";

class Page {
  constructor(input) {
    this.input = input;
    isDecimal = input.is_decimal;
    this.grid = new Grid(input.grid);
    this.state = new State(input, this.grid);
    this.state.readHash(location.hash);
    this.charts = Object.fromEntries(
      [...document.querySelectorAll("figure[id^=chart-]")].map((host) => [host.id.slice(6), new Chart(host)]),
    );
    this.controls = new Controls(this.state, () => this.update());
    byId("b-reset").addEventListener("click", () => this.restart(() => this.state.reset()));
    byId("b-best").addEventListener("click", () => this.takeBest());
    window.addEventListener("hashchange", () => {
      if (location.hash.replace(/^#/, "") !== this.state.hash()) this.restart(() => this.state.readHash(location.hash));
    });
    let width = 0;
    new ResizeObserver(([entry]) => {
      if (Math.abs(entry.contentRect.width - width) < 1) return;
      width = entry.contentRect.width;
      requestAnimationFrame(() => this.redraw());
    }).observe(document.querySelector("main"));
    // Redraw charts for the width of paper: scaled ones would be unreadable.
    window.addEventListener("beforeprint", () => this.drawFor({ wide: 640, narrow: 330 }));
    window.addEventListener("afterprint", () => this.drawFor(null));
    this.update();
  }

  drawFor(paper) {
    for (const [name, chart] of Object.entries(this.charts)) chart.width = paper && (name === "us" ? paper.wide : paper.narrow);
    this.redraw();
  }

  restart(change) {
    change();
    this.controls.show();
    this.update();
  }

  takeBest() {
    const found = this.outcomes.find(({ codec }) => codec.name === this.state.now.codec);
    if (found) this.restart(() => this.state.set("share", Number((100 * found.best.share).toFixed(4))));
  }

  modelOf(change, page) {
    return new Model({ ...this.state.options(page), ...change }, this.grid);
  }

  // The reference: raw pages of the fastest size, the smallest of equals.
  findRaw() {
    this.raw = null;
    for (const page of this.state.rawPages()) {
      const model = this.modelOf({}, page);
      const raw = model.raw(model.options.memoryBytes);
      if (this.raw === null || raw.usPerPage < this.raw.usPerPage - NOTHING_US) [this.raw, this.rawModel] = [raw, model];
    }
  }

  update() {
    const { state } = this;
    this.model = this.modelOf({});
    this.costs = this.model.options.codecs.find((codec) => codec.name === state.now.codec) ?? this.model.options.codecs[0];
    this.share = state.now.share / 100;
    this.findRaw();
    this.here = this.share > 0 ? this.model.point(this.costs, this.share) : this.raw;
    this.worth = this.rawModel.rawMemoryFor(this.here.usPerPage);
    this.outcomes = this.model.options.codecs.map((codec) => this.model.evaluate(codec, this.raw));
    if (state.hash() === "") this.takeStart();
    this.bound = this.modelOf({ replacement: "ideal" }).curve(this.costs);
    this.even = this.modelOf({ access: EVEN }).curve(this.costs);
    this.memory = this.overMemory();
    this.sizes = this.overData();
    this.showFigures();
    this.conclude();
    this.redraw();
    document.documentElement.dataset.computed = "yes";
    clearTimeout(this.toAddress);
    this.toAddress = setTimeout(() => this.writeHash(), 300);
  }

  // Initially the figures are the command's own, to the last digit.
  takeStart() {
    const { raw, here, worth, codecs } = this.input.start;
    const figures = (point) => ({ share: point.share, hitRatio: point.hit_ratio, usPerPage: point.us_per_page, pagesPerSecond: point.pages_per_second });
    Object.assign(this.raw, figures(raw));
    Object.assign(this.here, figures(here));
    this.worth = worth;
    for (const outcome of this.outcomes) {
      const exact = codecs.find((codec) => codec.name === outcome.codec.name);
      if (!exact) continue;
      Object.assign(outcome.best, figures(exact.best));
      outcome.paysUntil = exact.pays_until;
      const kind = exact.break_even;
      outcome.breakEven = typeof kind === "string" ? { kind } : { kind: "share", share: kind.share };
    }
  }

  writeHash() {
    const hash = this.state.hash();
    if (location.hash.replace(/^#/, "") === hash) return;
    // Replaces the history entry, so that dragging a slider does not fill the history.
    location.replace(`#${hash}`);
  }

  overMemory() {
    const { options } = this.model;
    const sizes = SPREAD.map((times) => clamp(options.memoryBytes * times, Math.max(65536, options.pageBytes), LARGEST_BYTES));
    return [null, ...options.codecs].map((codec) => ({
      codec,
      points: sizes.map((memory) => [memory, (codec ? this.model.at(codec, this.share, memory) : this.rawModel.raw(memory)).usPerPage]),
    }));
  }

  // Hit ratios by size of the data: with the given access and with uniform access, compressed and uncompressed.
  overData() {
    const { options } = this.model;
    if (this.state.traced()) return [];
    const sizes = SPREAD.map((times) => clamp(options.dataBytes * times, Math.max(options.pageBytes, options.accessBytes), LARGEST_BYTES));
    return [[false, false], [false, true], [true, false], [true, true]].map(([even, compressed]) => ({
      even,
      compressed,
      points: sizes.map((dataBytes) => {
        const isCompressed = compressed && this.share > 0;
        const { pageBytes } = (isCompressed ? this.model : this.rawModel).options;
        const model = this.modelOf({ dataBytes, access: even ? EVEN : options.access }, pageBytes);
        const point = isCompressed ? model.point(this.costs, this.share) : model.raw(options.memoryBytes);
        return [dataBytes, point.hitRatio];
      }),
    }));
  }

  redraw() {
    this.drawMeasured();
    this.drawShares();
    this.drawMemory();
    this.drawSizes();
  }
}

Object.assign(Page.prototype, drawing);
document.documentElement.classList.add("script");
new Page(JSON.parse(byId("input").textContent));
