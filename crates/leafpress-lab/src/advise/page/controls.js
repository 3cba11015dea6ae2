// The page's controls: native inputs, each number with a slider and a field.

// A logarithmic slider ranges from a hundredth to a hundred times the initial value.
const STEPS_A_DECADE = 60;

const REPLACEMENTS = {
    clock: "clock (the pool's)",
  ideal: "ideal: the hottest raw, the next compressed",
  lru: "LRU",
};

const SELECTS = ["codec", "access", "page", "wants", "threads", "replacement"];

const byId = (id) => document.getElementById(id);

// A compact value: three digits, in its unit.
function rounded(figure, bytes) {
  if (!bytes) return Number(figure.toPrecision(3));
  const base = isDecimal ? 1000 : 1024;
  const unit = base ** Math.floor(Math.log(Math.max(figure, 1)) / Math.log(base));
  return Math.round(Number((figure / unit).toPrecision(3)) * unit);
}

class Controls {
  // `changed` gets whether the change may continue, as while a slider is dragged.
  constructor(state, changed) {
    this.state = state;
    this.changed = changed;
    for (const key of Object.keys(state.fields)) this.connect(key);
    for (const key of SELECTS) this.connectSelect(key);
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    this.fill();
    this.show();
  }

  fill() {
    const options = (key, entries) => byId(`s-${key}`).replaceChildren(
      ...entries.map(([value, text]) => element("option", { value }, text)),
    );
    options("codec", this.state.codecs.map((codec) => [codec.name, codec.name]));
    options("page", this.state.pages.map((bytes) => [bytes, bytesText(bytes)]));
    options("threads", this.state.threads.map((threads) => [threads, threads]));
    options("wants", this.state.input.wants.map((bytes) => [bytes, bytesText(bytes)]));
    document.querySelector("[data-wants]").hidden = this.state.input.wants.length < 2;
    document.querySelector("[data-threads]").hidden = this.state.threads.length < 2;
    options("access", this.state.grid.accesses.map((access) => [access.name, access.label]));
    options("replacement", this.state.replacements().map((name) => [name, REPLACEMENTS[name]]));
  }

  base(key) {
    return this.state.first[key] > 0 ? this.state.first[key] : 100;
  }

  connect(key) {
    const [slider, field] = [byId(`r-${key}`), byId(`n-${key}`)];
    const { state } = this;
    const spec = state.fields[key];
    slider?.addEventListener("input", () => {
      let value = Number(slider.value);
      if (spec.log) {
        value = value === 0 ? this.base(key) : rounded(this.base(key) * 10 ** (value / STEPS_A_DECADE), spec.parse === parseBytes);
        value = clamp(value, spec.least, spec.most);
      }
      state.set(key, value);
      this.show(slider);
      this.changed();
    });
    field?.addEventListener("change", () => {
      const empty = field.value.trim() === "" && spec.none;
      const good = state.set(key, empty ? null : spec.parse(field.value));
      field.setAttribute("aria-invalid", String(!good));
      field.title = good ? "" : `${spec.text(spec.least)} to ${spec.text(spec.most)}`;
      if (!good) return;
      this.show();
      this.changed();
    });
    // Invalid input is reset.
    field?.addEventListener("blur", () => this.show());
  }

  connectSelect(key) {
    const select = byId(`s-${key}`);
    select.addEventListener("change", () => {
      const isNumber = ["page", "wants", "threads"].includes(key);
      this.state.set(key, isNumber ? Number(select.value) : select.value);
      this.show();
      this.changed();
    });
  }

  // Sets all inputs to the state, except the one being edited.
  show(but) {
    const { now, fields } = this.state;
    for (const [key, spec] of Object.entries(fields)) {
      const [slider, field] = [byId(`r-${key}`), byId(`n-${key}`)];
      const text = now[key] === null ? "" : spec.text(now[key]);
      if (slider) {
        if (slider !== but) {
          slider.value = spec.log ? Math.round(STEPS_A_DECADE * Math.log10(Math.max(now[key], 1e-9) / this.base(key))) : now[key];
        }
        slider.setAttribute("aria-valuetext", text);
      }
      if (field) {
        field.value = text;
        field.setAttribute("aria-invalid", "false");
        field.title = "";
      }
    }
    for (const key of SELECTS) byId(`s-${key}`).value = now[key];
    for (const id of ["r-data", "n-data"]) byId(id).disabled = this.state.traced();
  }
}
