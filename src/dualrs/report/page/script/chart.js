// Chart: step curves with areas and bands, a cursor that follows the mouse or the arrow keys, and a mark.

// Numbers rise; how many lie below x, or at most at x.
function countBelow(numbers, x, inclusive) {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < x || (inclusive && numbers[middle] === x)) low = middle + 1; else high = middle;
  }
  return low;
}
// A curve is a label, a look, rising numbers out of a total, and whether it counts those from x on or those up to x.
const valueAt = (curve, x) =>
  100 * (curve.falling ? curve.numbers.length - countBelow(curve.numbers, x, false) : countBelow(curve.numbers, x, true)) / curve.total;

function pathOf(curve, sx, sy, from, to) {
  let path = `M${sx(from).toFixed(1)} ${sy(valueAt(curve, from)).toFixed(1)}`;
  for (let k = countBelow(curve.numbers, from, false); k < curve.numbers.length; k++) {
    const x = curve.numbers[k];
    if (x === curve.numbers[k + 1]) continue;
    const after = curve.falling ? curve.numbers.length - k - 1 : k + 1;
    path += `H${sx(x).toFixed(1)}V${sy(100 * after / curve.total).toFixed(1)}`;
  }
  return path + `H${sx(to).toFixed(1)}`;
}
function niceStep(span, most) {
  const raw = span / most, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((f) => f * power).find((step) => step >= raw);
}

/** A diagram in a host. `show` draws curves and a band, and is called again when they change; `mark` moves the mark. */
class Chart {
  constructor(host, { label, what, height, zero = null, y = [0, 100], unit = "%" }) {
    Object.assign(this, { host, label, what, height, zero, y, unit, curves: [], band: null, cursor: null, marked: null, width: 0 });
    this.tip = make("div", { class: "tip", role: "status", hidden: true });
    this.svg = drawn("svg", { tabindex: 0, role: "img", height });
    host.replaceChildren(this.svg, this.tip);
    this.svg.addEventListener("pointermove", (event) => this.point(this.xAt(event)));
    this.svg.addEventListener("pointerleave", () => this.leave());
    this.svg.addEventListener("blur", () => this.leave());
    this.svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      this.point((this.cursor ?? 0) + move * (event.shiftKey ? 0.25 : 0.05));
    });
    new ResizeObserver(() => { if (host.clientWidth !== this.width) this.draw(); }).observe(host);
  }
  show(curves, band = null) {
    Object.assign(this, { curves, band });
    if (this.host.clientWidth) this.draw();
  }
  get range() {
    const numbers = this.curves.flatMap((c) => c.points ? c.points.map(([x]) => x) : [c.numbers[0], c.numbers[c.numbers.length - 1]]).filter((x) => x !== undefined);
    const low = Math.min(0, ...numbers), high = Math.max(...numbers, low + 0.1);
    return [low, high + (high - low) * 0.03];
  }
  xAt(event) {
    const box = this.svg.getBoundingClientRect(), at = (event.clientX - box.left) * this.width / box.width;
    return this.from + (at - 44) / (this.width - 54) * (this.to - this.from);
  }
  draw() {
    const { svg, height, y: [least, most] } = this, left = 44, right = 10, top = 10, bottom = 40;
    const width = this.width = Math.max(this.host.clientWidth, 240);
    [this.from, this.to] = this.range;
    const sx = this.sx = (x) => left + (x - this.from) / (this.to - this.from) * (width - left - right);
    const sy = (y) => top + (1 - (y - least) / (most - least)) * (height - top - bottom);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", `${this.what} against ${this.label}; arrow keys read the values`);
    svg.replaceChildren();
    const lines = niceStep(most - least, 5);
    for (let k = Math.ceil(least / lines); k * lines <= most + 1e-9; k++) {
      const y = +(k * lines).toFixed(6);
      svg.append(drawn("line", { class: y === 0 && least < 0 ? "zero" : "axis", x1: left, x2: width - right, y1: sy(y), y2: sy(y) }));
      svg.append(drawn("text", { x: left - 7, y: sy(y) + 4, "text-anchor": "end" }, y + this.unit));
    }
    const step = niceStep(this.to - this.from, width < 500 ? 5 : 10);
    for (let k = Math.ceil(this.from / step); k * step <= this.to; k++) {
      svg.append(drawn("text", { x: sx(k * step), y: height - bottom + 17, "text-anchor": "middle" }, String(+(k * step).toFixed(6))));
    }
    svg.append(drawn("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, this.label));
    if (this.zero != null && this.zero > this.from) svg.append(drawn("line", { class: "zero", x1: sx(this.zero), x2: sx(this.zero), y1: top, y2: height - bottom }));
    for (const c of this.curves.filter((one) => one.look.area)) {
      svg.append(drawn("path", { class: c.look.area, d: `${pathOf(c, sx, sy, this.from, this.to)}V${sy(0)}H${sx(this.from)}Z`, "data-curve": c.label }));
    }
    if (this.band) {
      const there = this.band.map(([x, low]) => `${sx(x).toFixed(1)} ${sy(Math.max(low, least)).toFixed(1)}`);
      const back = this.band.map(([x, , high]) => `${sx(x).toFixed(1)} ${sy(Math.min(high, most)).toFixed(1)}`).reverse();
      svg.append(drawn("path", { class: "band", d: `M${[...there, ...back].join("L")}Z` }));
    }
    for (const c of this.curves.filter((one) => one.look.line)) {
      const d = c.points ? `M${c.points.map(([x, y]) => `${sx(x).toFixed(1)} ${sy(y).toFixed(1)}`).join("L")}` : pathOf(c, sx, sy, this.from, this.to);
      svg.append(drawn("path", { class: c.look.line, d, "data-curve": c.label }));
    }
    const vertical = (kind) => drawn("line", { class: kind, y1: top, y2: height - bottom, visibility: "hidden" });
    this.line = vertical("cursor");
    this.flag = vertical("mark");
    svg.append(this.flag, this.line);
    this.mark(this.marked);
  }
  place(line, x) {
    line.setAttribute("x1", this.sx(x));
    line.setAttribute("x2", this.sx(x));
    line.setAttribute("visibility", "visible");
  }
  mark(x) {
    this.marked = x;
    if (x != null && this.flag && x <= this.to) this.place(this.flag, x);
  }
  point(x) {
    const cursor = this.cursor = Math.min(Math.max(Math.round(x * 100) / 100, this.from), this.to);
    this.place(this.line, cursor);
    const read = (c) => c.points ? c.points.reduce((near, p) => Math.abs(p[0] - cursor) < Math.abs(near[0] - cursor) ? p : near)[1] : valueAt(c, cursor);
    const rows = this.curves.map((c) => [c, read(c)]).sort((a, b) => b[1] - a[1]);
    this.tip.replaceChildren(make("div", {}, strong(`${this.label} ${cursor.toFixed(2)}`)),
      ...rows.map(([c, y]) => make("div", {}, make("span", {}, sample(c.look), c.label), make("span", {}, this.unit === "%" ? percent(y) : signed(y)))));
    this.tip.hidden = false;
    const beside = this.sx(cursor) + 12;
    this.tip.style.left = Math.max(0, beside + this.tip.offsetWidth > this.width ? this.sx(cursor) - 12 - this.tip.offsetWidth : beside) + "px";
  }
  leave() { this.tip.hidden = true; this.line.setAttribute("visibility", "hidden"); }
}
