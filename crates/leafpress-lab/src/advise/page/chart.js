// Line charts as SVG, redrawn when their figures change. All text is set as text, never as markup.
//
// A chart: { title, note, x: { label, from, to, log, steps, format }, y: { label, to, log, format },
// lines: [{ name, colour, points: [[x, y], ..],
// dash, thin, dots }], marks: [{ x, y, shape, colour, text }], cursor: { x, text } }. With `steps`, x counts them and they name the ticks.

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// ---- Number formats.

function grouped(text) {
  const [whole, decimals] = text.split(".");
  const apart = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return decimals === undefined ? apart : `${apart}.${decimals}`;
}

// A figure with at least three digits, as in report/numbers.rs.
function brief(figure) {
  const size = Math.abs(figure);
  if (size === Infinity) return "∞";
  if (size === 0) return "0";
  if (size >= 99.95) return grouped(figure.toFixed(0));
  if (size >= 9.995) return figure.toFixed(1);
  if (size >= 0.9995) return figure.toFixed(2);
  const decimals = size >= 0.09995 ? 3 : size >= 0.009995 ? 4 : 5;
  return figure.toFixed(decimals).replace(/\.?0+$/, "");
}

// A figure for axes and inputs: without insignificant digits.
const plain = (figure) => (Math.abs(figure) >= 1000 ? grouped(String(Math.round(figure))) : String(Number(figure.toPrecision(3))));

const percentOf = (share, decimals = 1) => `${(100 * share).toFixed(decimals)}%`;

// Whether sizes were given in powers of 1000, and are shown in them.
let isDecimal = false;
const UNITS = ["B", "K", "M", "G", "T", "P", "E"];
const DECIMAL_UNITS = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];

// Bytes as in flags (core/bytes.rs), in the largest unit that divides them, of 1024 or of 1000.
function bytesText(bytes) {
  const inUnits = (base, units) => {
    const power = Math.min(Math.floor(Math.log(Math.max(bytes, 1)) / Math.log(base) + 1e-9), units.length - 1);
    return [bytes / base ** power, units[power]];
  };
  const few = (number) => Math.abs(number * 100 - Math.round(number * 100)) < 1e-9;
  const [binary, unit] = inUnits(1024, UNITS);
  const [decimal, decimalUnit] = inUnits(1000, DECIMAL_UNITS);
  if (!few(binary) && (isDecimal || few(decimal))) return `${Number(decimal >= 1000 ? decimal.toFixed(0) : few(decimal) ? decimal.toFixed(2) : decimal.toPrecision(3))}${decimalUnit}`;
  return `${Number(binary >= 1000 ? binary.toFixed(0) : binary.toPrecision(3))}${unit}`;
}

function timeText(us) {
  if (us >= 1e6) return `${brief(us / 1e6)} s`;
  if (us >= 1e4) return `${brief(us / 1e3)} ms`;
  return `${brief(us)} us`;
}

// ---- Axes.

function ticksBetween(from, to, about) {
  const rough = (to - from) / Math.max(about, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((step) => step >= rough - 1e-12);
  const ticks = [];
  for (let at = Math.ceil(from / step - 1e-9); at * step <= to + step * 1e-9; at += 1) ticks.push(at * step);
  return ticks;
}

function logTicks(from, to, about) {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power += 1) {
      for (const step of steps) {
        const tick = step * 10 ** power;
        if (tick >= from * (1 - 1e-9) && tick <= to * (1 + 1e-9)) ticks.push(tick);
      }
    }
    if (ticks.length <= about || steps.length === 1) {
      const every = Math.ceil(ticks.length / Math.max(about, 1));
      return ticks.filter((_, at) => at % every === 0);
    }
  }
  return [];
}

// Powers of 2 read better than powers of 10 for bytes, unless sizes are shown in powers of 1000.
function byteTicks(from, to, about) {
  if (isDecimal) return logTicks(from, to, about);
  const [low, high] = [Math.ceil(Math.log2(from) - 1e-9), Math.floor(Math.log2(to) + 1e-9)];
  const every = Math.max(Math.ceil((high - low + 1) / Math.max(about, 1)), 1);
  const ticks = [];
  for (let power = low; power <= high; power += every) ticks.push(2 ** power);
  return ticks;
}

function place(axis, figure, from, to, start, end) {
  const part = axis.log ? Math.log(figure / from) / Math.log(to / from) : (figure - from) / (to - from);
  return start + part * (end - start);
}

const isFigure = (point) => Number.isFinite(point[0]) && Number.isFinite(point[1]);

// ---- The chart.

class Chart {
  constructor(host) {
    this.host = host;
    this.caption = element("figcaption");
    this.legend = element("div", { class: "legend" });
    this.box = element("div", { class: "drawing" });
    this.table = element("table");
    this.note = element("p", { class: "faint note" });
    const details = element("details", {}, element("summary", {}, "As a table"), element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, this.table));
    host.replaceChildren(this.caption, this.legend, this.box, this.note, details);
    // The table is created when it is opened.
    details.addEventListener("toggle", () => this.tabulate());
    this.details = details;
  }

  draw(chart) {
    this.chart = chart;
    const lines = chart.lines.map((line) => ({ ...line, points: line.points.filter(isFigure) })).filter((line) => line.points.length > 0);
    this.lines = lines;
    this.host.hidden = lines.length === 0;
    if (lines.length === 0) return;
    this.caption.textContent = chart.title;
    this.note.textContent = chart.note ?? "";
    this.note.hidden = !chart.note;
    this.drawLegend(lines, chart.marks ?? []);
    this.drawLines(chart, lines);
    this.tabulate();
  }

  drawLegend(lines, marks) {
    const keys = lines.map((line) => {
      const sample = document.createElementNS(SVG, "svg");
      for (const [key, value] of [["viewBox", "0 0 26 10"], ["width", 26], ["height", 10], ["aria-hidden", "true"]]) sample.setAttribute(key, value);
      shape(sample, "line", { x1: 0, x2: 26, y1: 5, y2: 5, ...stroke(line) });
      return element("span", {}, sample, line.name);
    });
    const seen = new Set();
    for (const mark of marks) {
      if (!mark.key || seen.has(mark.key)) continue;
      seen.add(mark.key);
      const sample = document.createElementNS(SVG, "svg");
      for (const [key, value] of [["viewBox", "0 0 14 14"], ["width", 14], ["height", 14], ["aria-hidden", "true"]]) sample.setAttribute(key, value);
      drawMark(sample, 7, 7, { ...mark, colour: "currentColor" });
      keys.push(element("span", {}, sample, mark.key));
    }
    this.legend.replaceChildren(...keys);
  }

  drawLines(chart, lines) {
    const width = Math.max(Math.round(this.width ?? (this.box.clientWidth || 560)), 260);
    const height = Math.round(clamp(width * (chart.tall ? 0.7 : 0.58), 220, chart.tall ? 470 : 320));
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${chart.title}. ${this.inWords(chart, lines)}`);
    const { x, y } = chart;
    const figures = lines.flatMap((line) => line.points.map((point) => point[1]));
    const [from, to] = x.steps ? [-0.35, x.steps.length - 0.65] : [x.from, x.to];
    const most = y.to ?? Math.max(...figures, 1e-9) * 1.06;
    let [low, high] = [0, most];
    if (y.log) {
      low = 10 ** Math.floor(Math.log10(Math.min(...figures.filter((figure) => figure > 0))) + 1e-9);
      high = 10 ** Math.ceil(Math.log10(Math.max(...figures)) - 1e-9);
      if (!(high > low)) high = low * 10;
    }
    const yTicks = y.log ? logTicks(low, high, height / 34) : ticksBetween(low, high, height / 52);
    const yTexts = yTicks.map(y.tick ?? plain);
    const left = 12 + 7 * Math.max(...yTexts.map((text) => text.length), 1);
    const [right, top, bottom] = [width - 14, 38, height - 42];
    const atX = (figure) => place(x, figure, from, to, left, right);
    const atY = (figure) => place(y, y.log ? Math.max(figure, low) : figure, low, high, bottom, top);
    shape(svg, "text", { x: 2, y: 14, class: "name" }, y.label);
    yTicks.forEach((tick, at) => {
      shape(svg, "line", { x1: left, x2: right, y1: atY(tick), y2: atY(tick), class: "grid" });
      shape(svg, "text", { x: left - 6, y: atY(tick) + 4, "text-anchor": "end" }, yTexts[at]);
    });
    this.drawXTicks(svg, x, { from, to, left, right, top, bottom, atX });
    shape(svg, "text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", class: "name" }, x.label);
    if (chart.cursor && chart.cursor.x >= from && chart.cursor.x <= to) {
      const at = atX(chart.cursor.x);
      shape(svg, "line", { x1: at, x2: at, y1: top, y2: bottom, class: "cursor" });
      const anchor = at > right - 60 ? "end" : at < left + 60 ? "start" : "middle";
      shape(svg, "text", { x: at, y: top - 6, "text-anchor": anchor, class: "here" }, chart.cursor.text);
    }
    for (const line of lines) {
      const points = line.points.map((point) => `${atX(point[0]).toFixed(1)},${atY(point[1]).toFixed(1)}`);
      if (!line.only) shape(svg, "polyline", { points: points.join(" "), fill: "none", ...stroke(line) });
      if (line.dots) {
        for (const [at, figure] of line.points) {
          const dot = drawMark(svg, atX(at), atY(figure), { shape: line.dots, colour: line.colour });
          shape(dot, "title", {}, `${line.name}, ${x.steps ? x.steps[at] : x.format(at)}: ${y.format(figure)}`);
        }
      }
    }
    for (const mark of chart.marks ?? []) {
      if (!isFigure([mark.x, mark.y])) continue;
      const drawn = drawMark(svg, atX(mark.x), atY(mark.y), mark);
      if (mark.text) shape(drawn, "title", {}, mark.text);
    }
    this.box.replaceChildren(svg);
  }

  drawXTicks(svg, x, { from, to, left, right, top, bottom, atX }) {
    const about = (right - left) / (x.bytes ? 62 : 52);
    const ticks = x.steps
      ? x.steps.map((_, at) => at)
      : x.bytes ? byteTicks(from, to, about) : x.log ? logTicks(from, to, about) : ticksBetween(from, to, about);
    for (const tick of ticks) {
      if (!x.steps) shape(svg, "line", { x1: atX(tick), x2: atX(tick), y1: top, y2: bottom, class: "grid" });
      shape(svg, "text", { x: atX(tick), y: bottom + 16, "text-anchor": "middle" }, x.steps ? x.steps[tick] : x.format(tick));
    }
    shape(svg, "line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" });
  }

  inWords(chart, lines) {
    const at = (point) => `${chart.y.format(point[1])} at ${chart.x.steps ? chart.x.steps[point[0]] : chart.x.format(point[0])}`;
    const words = lines.map((line) => {
      const [first, last] = [line.points[0], line.points[line.points.length - 1]];
      return line.points.length > 1 ? `${line.name}: ${at(first)}, ${at(last)}` : `${line.name}: ${at(first)}`;
    });
    return `${chart.y.label} against ${chart.x.label}. ${words.join("; ")}.`;
  }

  tabulate() {
    if (!this.details.open || !this.lines || this.lines.length === 0) return;
    const { x, y } = this.chart;
    const all = [...new Set(this.lines.flatMap((line) => line.points.map((point) => point[0])))].sort((one, other) => one - other);
    const every = Math.ceil((all.length - 1) / 25) || 1;
    const rows = all.filter((_, at) => at % every === 0);
    const head = element("tr", {}, element("th", { scope: "col" }, x.label));
    for (const line of this.lines) head.append(element("th", { scope: "col" }, line.name));
    const body = rows.map((figure) => {
      const row = element("tr", {}, element("th", { scope: "row" }, x.steps ? x.steps[figure] : x.format(figure)));
      for (const line of this.lines) {
        const point = line.points.find((point) => point[0] === figure);
        row.append(element("td", {}, point ? y.format(point[1]) : ""));
      }
      return row;
    });
    this.table.replaceChildren(
      element("caption", {}, y.label),
      element("thead", {}, head),
      element("tbody", {}, ...body),
    );
  }
}

function stroke(line) {
  const attributes = { stroke: line.colour, "stroke-width": line.thin ? 2 : 2.5, "stroke-linejoin": "round" };
  if (line.dash) attributes["stroke-dasharray"] = line.dash;
  return attributes;
}

function drawMark(parent, x, y, mark) {
  const group = shape(parent, "g", { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
  const hollow = { fill: "var(--card)", stroke: mark.colour, "stroke-width": 2 };
  const solid = { fill: mark.colour, stroke: "var(--card)", "stroke-width": 1 };
  if (mark.shape === "diamond") shape(group, "path", { d: "M0-6.5 6.5 0 0 6.5-6.5 0Z", ...solid });
  else if (mark.shape === "ring") shape(group, "circle", { r: 4.5, ...hollow });
  else if (mark.shape === "square") shape(group, "rect", { x: -3.5, y: -3.5, width: 7, height: 7, ...solid });
  else if (mark.shape === "triangle") shape(group, "path", { d: "M0-5 5 4-5 4Z", ...solid });
  else shape(group, "circle", { r: mark.large ? 6 : 3.5, ...solid });
  return group;
}
