"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/** An element with attributes and children; text is never read as markup. */
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}
function drawn(tag, attributes = {}, text = null) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text != null) node.textContent = text;
  return node;
}
const percent = (value) => value.toFixed(1) + "%";
const pen = (k) => `p${k % 6} d${Math.floor(k / 6) % 4}`;

// Numbers rise; how many lie below x, or at most at x.
function countBelow(numbers, x, inclusive) {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < x || (inclusive && numbers[middle] === x)) low = middle + 1; else high = middle;
  }
  return low;
}
// A curve is a label, a pen, rising numbers out of a total, and whether it counts those from x on or those up to x.
const valueAt = (curve, x) =>
  100 * (curve.falling ? curve.numbers.length - countBelow(curve.numbers, x, false) : countBelow(curve.numbers, x, true)) / curve.total;

function pathOf(curve, sx, sy, from, to) {
  let path = `M${sx(from).toFixed(1)} ${sy(valueAt(curve, from)).toFixed(1)}`;
  let last = null;
  for (const x of curve.numbers) {
    if (x === last || x < from) continue;
    last = x;
    const after = curve.falling ? curve.numbers.length - countBelow(curve.numbers, x, true) : countBelow(curve.numbers, x, true);
    path += `H${sx(x).toFixed(1)}V${sy(100 * after / curve.total).toFixed(1)}`;
  }
  return path + `H${sx(to).toFixed(1)}`;
}

function niceStep(span, most) {
  const raw = span / most, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((f) => f * power).find((step) => step >= raw);
}

/** A diagram of step curves with a cursor that follows the mouse or the arrow keys. */
function chart(host, { curves, label, what, height, zero }) {
  let cursor = null;
  const tip = make("div", { class: "tip", role: "status", hidden: true });
  const left = 44, right = 10, top = 10, bottom = 40;
  function range() {
    const numbers = curves.flatMap((c) => [c.numbers[0], c.numbers[c.numbers.length - 1]]).filter((x) => x !== undefined);
    const low = Math.min(0, ...numbers), high = Math.max(...numbers, low + 0.1);
    return [low, high + (high - low) * 0.03];
  }
  function draw() {
    const width = Math.max(host.clientWidth, 240), [from, to] = range();
    const sx = (x) => left + (x - from) / (to - from) * (width - left - right);
    const sy = (y) => top + (1 - y / 100) * (height - top - bottom);
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: "img", "aria-label": `${what} against ${label}` });
    for (let y = 0; y <= 100; y += 20) {
      svg.append(drawn("line", { class: "axis", x1: left, x2: width - right, y1: sy(y), y2: sy(y) }));
      svg.append(drawn("text", { x: left - 7, y: sy(y) + 4, "text-anchor": "end" }, y + "%"));
    }
    const step = niceStep(to - from, width < 500 ? 5 : 10);
    for (let k = Math.ceil(from / step); k * step <= to; k++) {
      svg.append(drawn("text", { x: sx(k * step), y: height - bottom + 17, "text-anchor": "middle" }, String(+(k * step).toFixed(6))));
    }
    svg.append(drawn("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, label));
    if (zero != null && zero > from) svg.append(drawn("line", { class: "zero", x1: sx(zero), x2: sx(zero), y1: top, y2: height - bottom }));
    const shown = curves.filter((c) => !c.hidden);
    for (const c of shown) svg.append(drawn("path", { class: pen(c.pen), d: pathOf(c, sx, sy, from, to), "data-curve": c.label }));
    const line = drawn("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
    svg.append(line);
    function point(x) {
      cursor = Math.min(Math.max(Math.round(x * 100) / 100, from), to);
      line.setAttribute("x1", sx(cursor));
      line.setAttribute("x2", sx(cursor));
      line.setAttribute("visibility", "visible");
      const rows = shown.map((c) => [c, valueAt(c, cursor)]).sort((a, b) => b[1] - a[1]);
      tip.replaceChildren(make("div", {}, make("strong", {}, `${label} ${cursor.toFixed(2)}`)),
        ...rows.map(([c, y]) => make("div", {}, make("span", {}, make("i", { class: `b${c.pen % 6}` }), c.label), make("span", {}, percent(y)))));
      tip.hidden = false;
      const beside = sx(cursor) + 12;
      tip.style.left = Math.max(0, beside + tip.offsetWidth > width ? sx(cursor) - 12 - tip.offsetWidth : beside) + "px";
    }
    function leave() { tip.hidden = true; line.setAttribute("visibility", "hidden"); }
    svg.addEventListener("pointermove", (event) => {
      const at = (event.clientX - svg.getBoundingClientRect().left) * width / svg.getBoundingClientRect().width;
      point(from + (at - left) / (width - left - right) * (to - from));
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      point((cursor ?? 0) + move * (event.shiftKey ? 0.25 : 0.05));
    });
    host.replaceChildren(svg, tip);
  }
  let width = 0;
  new ResizeObserver(() => { if (host.clientWidth !== width) { width = host.clientWidth; draw(); } }).observe(host);
  return draw;
}

// Curves of all methods of all runs; where there are several runs, those of each run's own rule at first.
const several = data.runs.length > 1;
const curves = data.runs.flatMap((run) => run.curves.map((c) => ({
  label: several ? `${run.name} · ${c.title}` : c.title, numbers: c.radii, total: run.inputs, falling: true, hidden: several && !c.own })));
curves.filter((c) => !c.hidden).concat(curves.filter((c) => c.hidden)).forEach((c, k) => { c.pen = k; });
const drawAccuracy = chart(byId("accuracy-chart"), { curves, label: "L2 radius", what: "certified accuracy", height: 380 });
byId("legend").replaceChildren(...curves.map((c) => {
  const sample = drawn("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" });
  sample.append(drawn("path", { class: pen(c.pen), d: "M0 4H24" }));
  const button = make("button", { type: "button", "aria-pressed": String(!c.hidden), onclick: () => {
    c.hidden = !c.hidden;
    button.setAttribute("aria-pressed", String(!c.hidden));
    drawAccuracy();
  } }, sample, c.label);
  return button;
}));

// Diagnostics
function bars(rows, total) {
  return make("div", { class: "bars" }, ...rows.map(([name, value, text, kind]) => {
    const fill = make("div");
    fill.style.width = total ? 100 * value / total + "%" : "0";
    return make("div", { class: kind || "" }, make("b", { title: name }, name), make("div", { class: "track" }, fill), make("span", {}, text));
  }));
}
function diagnostic(key, title, label, zero, what, caption) {
  const found = data.runs.filter((run) => run.diagnostics[key]);
  if (!found.length) return;
  const host = make("div", { class: "chart" });
  byId("small-charts").append(make("div", { class: "panel", "data-diagnostic": key }, make("h3", {}, title),
    make("p", { class: "small faint" }, what), host,
    ...found.map((run) => {
      const text = caption(run.diagnostics[key]);
      return make("p", { class: "small faint" }, several ? `${run.name}: ${text}` : text);
    })));
  chart(host, { label, what: title, height: 250, zero,
    curves: found.map((run, k) => ({ label: run.name, pen: k, numbers: run.diagnostics[key], total: run.diagnostics[key].length })) });
}
const share = (numbers, x, inclusive) => percent(100 * countBelow(numbers, x, inclusive) / numbers.length);
for (const run of data.runs) {
  const best = run.diagnostics.best;
  if (!best) continue;
  const total = best.reduce((sum, [, count]) => sum + count, 0);
  byId("small-charts").append(make("div", { class: "panel", "data-diagnostic": "best" },
    make("h3", {}, "Best sigma" + (several ? `, ${run.name}` : "")),
    make("p", { class: "small faint" }, "Inputs for which each sigma alone gives the largest radius of the true class."),
    bars(best.map(([name, count]) => [name, count, `${count} (${percent(100 * count / total)})`]), Math.max(...best.map(([, count]) => count)))));
}
diagnostic("regret", "Regret of the routing", "regret", null,
  "Share of inputs up to each regret: the radius of the best sigma less that of the chosen one, each as if alone.",
  (numbers) => `The chosen sigma is as good as any for ${share(numbers, 0, true)} of inputs.`);
diagnostic("slack", "Slack of the routing", "slack", 0,
  "Share of inputs up to each slack: the radius of the routing less that of the class, under rule paper.",
  (numbers) => `The routing limits the radius of ${share(numbers, 0, false)} of inputs.`);
diagnostic("p_a", "Votes for the true class", "share of votes", 0.5,
  "Share of inputs up to each share of votes that name the true class at the chosen sigma.",
  (numbers) => `At most half of the votes name the true class for ${share(numbers, 0.5, true)} of inputs.`);
byId("diagnostics-note").textContent = data.runs.flatMap((run) => run.diagnostics.notes.map((note) => several ? `${run.name}: ${note}` : note)).join(" ");

// Gallery
const PAGE = 120;
const state = { run: 0, flags: new Set(), text: "", order: "index", shown: PAGE, list: [] };
const run = () => data.runs[state.run];
const called = (k) => k == null ? "unknown" : run().classes ? run().classes[k] : `class ${k}`;
const passes = (input) => [...state.flags].every((flag) => input.flags.includes(flag));

function matches(input) {
  const text = state.text.trim().toLowerCase();
  return !text || [input.id, called(input.label), called(input.selected)].some((t) => t.toLowerCase().includes(text));
}
function answer(input) {
  if (input.outcome !== "certified" && input.outcome !== "predicted") return ["abstains", "faint"];
  return [called(input.selected), input.flags.includes("wrong") ? "bad" : ""];
}
function card(input, place) {
  const [text, kind] = answer(input);
  return make("li", {}, make("button", { type: "button", "data-input": input.id, onclick: () => open(place) },
    input.image != null ? make("img", { src: "data:image/png;base64," + data.images[input.image], alt: "", loading: "lazy" }) : null,
    make("span", { class: kind }, text), make("span", {}, input.outcome === "certified" ? `${input.radius} at σ ${input.sigma}` : input.outcome),
    make("span", { class: "faint", title: input.id }, input.id)));
}
function refresh() {
  const inputs = run().gallery.filter((input) => passes(input) && matches(input));
  const sign = { index: 0, rising: 1, falling: -1 }[state.order];
  if (sign) inputs.sort((a, b) => sign * (a.radius - b.radius) || a.index - b.index);
  state.list = inputs;
  byId("cards").replaceChildren(...inputs.slice(0, state.shown).map(card));
  byId("found").textContent = `${inputs.length} of ${run().gallery.length} inputs.`;
  byId("more").hidden = inputs.length <= state.shown;
  for (const button of byId("filters").children) button.setAttribute("aria-pressed", String(state.flags.has(button.dataset.flag)));
}
function change(update) { update(); state.shown = PAGE; refresh(); }
function choose(k) {
  state.run = k;
  state.flags.clear();
  byId("gallery-note").textContent = run().gallery_notes.join(" ");
  byId("filters").replaceChildren(...data.flags.map((flag) => {
    const count = run().gallery.filter((input) => input.flags.includes(flag)).length;
    return make("button", { type: "button", "data-flag": flag, onclick: () =>
      change(() => state.flags.has(flag) ? state.flags.delete(flag) : state.flags.add(flag)) }, `${flag} ${count}`);
  }));
  change(() => {});
}
byId("run").replaceChildren(...data.runs.map((r, k) => make("option", { value: k }, r.name)));
byId("run-choice").hidden = !several;
byId("run").addEventListener("change", (event) => choose(+event.target.value));
byId("order").addEventListener("change", (event) => change(() => { state.order = event.target.value; }));
byId("find").addEventListener("input", (event) => change(() => { state.text = event.target.value; }));
byId("more").addEventListener("click", () => { state.shown += PAGE; refresh(); });

/** Where certificate and attack stand: what is certified, then what nothing is known about. */
function scale(found) {
  const end = Math.max(found.reach, +found.radius) || 1;
  const known = make("div", { class: "known" }), open = make("div", { class: "open" });
  known.style.width = 100 * Math.min(+found.radius, found.reach) / end + "%";
  open.style.width = 100 * (found.reach - Math.min(+found.radius, found.reach)) / end + "%";
  return make("div", { class: "scale" }, make("div", { class: "range", "aria-hidden": "true" }, known, open),
    make("div", { class: "small" }, make("span", {}, `certified ${found.radius}`),
      make("span", {}, found.upper ? `broken at ${found.upper}` : `not broken up to ${found.reach.toFixed(4)}`)));
}
function attacked(found) {
  const picture = (place, text) => place == null ? null : make("figure", {},
    make("img", { src: "data:image/png;base64," + data.images[place], alt: text }), make("figcaption", { class: "small faint" }, text));
  return make("div", { class: "panel attack" }, make("h3", {}, `Attack on ${found.method}`), make("p", {}, found.said), scale(found),
    make("div", { class: "pictures" }, picture(found.image, `answered with ${found.answer}`),
      picture(found.difference, `the difference, times ${found.times}`)));
}

/** Open the input at a place of the list that is shown. */
function open(place) {
  const input = state.list[place], dialog = byId("why");
  const [text, kind] = answer(input);
  const step = (by, name, label) => make("button", { type: "button", "aria-label": label, disabled: !state.list[place + by], onclick: () => open(place + by) }, name);
  const truth = input.label == null ? null : called(input.label);
  const longest = Math.max(...input.radii.map(([, r]) => +r), ...Object.values(input.methods).map(([, r]) => +r));
  const votes = (title, rows, chosen) => make("div", { class: "panel" + (chosen ? " chosen" : "") }, make("h3", {}, title),
    rows ? bars(rows.map(([name, count]) => [name, count, count.toLocaleString("en"), name === truth ? "truth" : ""]), rows.reduce((s, [, c]) => s + c, 0))
      : make("p", { class: "faint small" }, "not asked: its votes could not change the certificate"));
  dialog.replaceChildren(make("div", { class: "why" },
    make("header", {}, make("h2", { id: "why-title" }, `Input ${input.id}`), step(-1, "←", "Previous input"), step(1, "→", "Next input"),
      make("button", { type: "button", "aria-label": "Close", onclick: () => dialog.close() }, "✕")),
    make("div", { class: "top" },
      input.image != null ? make("img", { src: "data:image/png;base64," + data.images[input.image], alt: `Image of input ${input.id}` }) : null,
      make("div", {},
        make("p", {}, make("strong", { class: kind }, text), input.outcome === "certified" ? ` within L2 radius ${input.radius}` : input.outcome === "predicted" ? " without a radius" : `: ${input.outcome}`,
          input.sigma ? ` · sigma ${input.sigma}` : input.outcome === "predicted" ? " · by the core network" : "", ` · label: ${called(input.label)}`),
        make("p", { id: "why-reason" }, input.reason),
        input.flags.length ? make("p", { class: "small faint" }, input.flags.join(" · ")) : null)),
    make("div", { class: "grid" },
      make("div", { class: "panel" }, make("h3", {}, "Radii"), bars(input.radii.map(([name, r]) => [name, +r, r, name === "certified" ? "on" : ""]), longest)),
      make("div", { class: "panel" }, make("h3", {}, "By method"),
        bars(Object.entries(input.methods).map(([name, [class_, r]]) => [name, +r, class_ < 0 ? "abstains" : `${r} ${called(class_)}`, class_ === input.label ? "truth" : ""]), longest)),
      input.router ? votes(run().router, input.router.map((count, k) => [run().routes[k], count]), false) : null,
      input.core ? make("div", { class: "panel" + (input.sigma ? "" : " chosen") }, make("h3", {}, "Core network, without noise"), make("p", {}, input.core)) : null,
      ...input.votes.map((rows, k) => votes(`Class votes at sigma ${input.sigmas[k]}`, rows, input.sigmas[k] === input.sigma)),
      ...input.attacks.map(attacked))));
  dialog.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && state.list[place + by]) { event.preventDefault(); open(place + by); }
  };
  if (!dialog.open) dialog.showModal();
}
byId("why").addEventListener("click", (event) => { if (event.target === byId("why")) byId("why").close(); });
choose(0);
