// The page: computes the model again when something is changed, and draws what changed. What takes long is done in slices of a few
// milliseconds, the figures first, then the charts coarsely, then finely; a change begins it anew.

const SLICE_MS = 12;
const COARSE = 10;
// Points of the charts over memory and over data, each from a tenth to ten times what is there now.
const SPREAD = Array.from({ length: 25 }, (_, at) => 10 ** ((at - 12) / 12));
const DASHED = "7 5";
const DOTTED = "2 4";

// What happens in a cache hangs on room and access only: it is kept when costs change.
class KeptModel extends Model {
  static kept = new Map();

  constructor(options) {
    super(options);
    const { access, pageBytes, replacement, restoreAfter } = options;
    const law = access.kind === "trace" ? access.name : [access.keysPct, access.operationsPct, access.theta, access.h];
    this.key = JSON.stringify([access.kind, law, this.dataBytes, pageBytes, replacement, restoreAfter]);
  }

  events(room) {
    const { kept } = KeptModel;
    if (kept.size > 50000) kept.clear();
    const key = `${this.key} ${room.rawPages} ${room.compressedPages}`;
    let events = kept.get(key);
    if (!events) {
      events = super.events(room);
      kept.set(key, events);
    }
    return events;
  }
}

class Page {
  constructor(input) {
    this.input = input;
    this.state = new State(input);
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
    // Charts are drawn for the width of paper: what they are scaled to is no longer readable.
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
    const found = this.outcome?.codecs.find(({ codec }) => codec.name === this.state.now.codec);
    if (found) this.restart(() => this.state.set("share", Math.round(100 * found.best.share)));
  }

  update() {
    const { state } = this;
    document.documentElement.dataset.computed = "no";
    this.model = new KeptModel(state.options());
    this.costs = this.model.options.codecs.find((codec) => codec.name === state.now.codec) ?? this.model.options.codecs[0];
    this.share = state.now.share / 100;
    this.raw = this.model.raw(this.model.options.memoryBytes);
    // At share 0 nothing is compressed, whatever the thesis charges there.
    this.here = this.share > 0 ? this.model.point(this.costs, this.share) : this.raw;
    this.worth = undefined;
    this.outcome = null;
    this.curves = [];
    this.memory = null;
    this.sizes = null;
    this.showFigures();
    this.begin(this.work());
    clearTimeout(this.toAddress);
    this.toAddress = setTimeout(() => this.writeHash(), 300);
  }

  writeHash() {
    const hash = this.state.hash();
    if (location.hash.replace(/^#/, "") === hash) return;
    // Replaces the entry in the history: a slider's way is not one to go back on step by step.
    location.replace(`#${hash}`);
  }

  begin(steps) {
    clearTimeout(this.slice);
    const go = () => {
      const end = performance.now() + SLICE_MS;
      do {
        if (steps.next().done) return;
      } while (performance.now() < end);
      this.slice = setTimeout(go, 0);
    };
    this.slice = setTimeout(go, 0);
  }

  *work() {
    const { model } = this;
    const { codecs, memoryBytes } = model.options;
    this.worth = yield* rawMemoryFor(model, this.here.usPerPage);
    this.showFigures();
    const coarse = codecs.map((codec) => ({ codec, curve: [] }));
    for (const { codec, curve } of coarse) {
      for (let at = 0; at <= COARSE; at += 1) {
        curve.push(model.point(codec, at / COARSE));
        yield;
      }
    }
    this.curves = coarse;
    this.drawShares();
    const outcome = yield* evaluate(model);
    const bound = yield* this.curveOf({ ...model.options, replacement: "ideal" });
    const even = yield* this.curveOf({ ...model.options, access: { kind: "uniform" } });
    // At once, without a step between: the page may be drawn anew at any of them.
    Object.assign(this, { outcome, curves: outcome.codecs, bound, even });
    this.drawShares();
    this.conclude();
    this.memory = yield* this.overMemory(memoryBytes);
    this.drawMemory();
    this.sizes = yield* this.overData();
    this.drawSizes();
    document.documentElement.dataset.computed = "yes";
  }

  // The chosen codec's points over the shares, with other options.
  *curveOf(options) {
    const model = new KeptModel(options);
    const points = [];
    for (let at = 0; at <= STEPS; at += 2) {
      points.push(model.point(this.costs, at / STEPS));
      yield;
    }
    return points;
  }

  *overMemory(memoryBytes) {
    const most = LARGEST_BYTES;
    const sizes = SPREAD.map((times) => clamp(memoryBytes * times, Math.max(65536, this.model.options.pageBytes), most));
    const lines = [];
    for (const codec of [null, ...this.model.options.codecs]) {
      const points = [];
      for (const memory of sizes) {
        const model = new KeptModel({ ...this.model.options, memoryBytes: memory });
        const point = codec && this.share > 0 ? model.point(codec, this.share) : model.raw(memory);
        points.push([memory, point.usPerPage]);
        yield;
      }
      lines.push({ codec, points });
    }
    return lines;
  }

  // Hit ratios over sizes of the data: as it is asked for, and evenly, without compression and with.
  *overData() {
    const { options } = this.model;
    if (options.access.kind === "trace") return [];
    const sizes = SPREAD.map((times) => clamp(options.dataBytes * times, options.pageBytes, LARGEST_BYTES));
    const lines = [];
    for (const [even, compressed] of [[false, false], [false, true], [true, false], [true, true]]) {
      const points = [];
      for (const data of sizes) {
        const access = even ? { kind: "uniform" } : options.access;
        const model = new KeptModel({ ...options, access, dataBytes: data });
        const point = compressed && this.share > 0 ? model.point(this.costs, this.share) : model.raw(options.memoryBytes);
        points.push([data, point.hitRatio]);
        yield;
      }
      lines.push({ even, compressed, points });
    }
    return lines;
  }

  redraw() {
    this.drawMeasured();
    if (this.curves.length > 0) this.drawShares();
    if (this.memory) this.drawMemory();
    if (this.sizes) this.drawSizes();
  }
}

Object.assign(Page.prototype, drawing);
document.documentElement.classList.add("script");
new Page(JSON.parse(byId("input").textContent));
