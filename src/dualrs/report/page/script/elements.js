// Elements: how markup and drawings are made; text is never read as markup.

const byId = (id) => document.getElementById(id);
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
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(1);
const strong = (text) => make("strong", {}, String(text));

/** Bars beside their names: rows of a name, a value, its text and a class. */
function bars(rows, total) {
  return make("div", { class: "bars" }, ...rows.map(([name, value, text, kind]) => {
    const fill = make("div");
    fill.style.width = total ? 100 * Math.min(Math.max(value, 0) / total, 1) + "%" : "0";
    return make("div", { class: kind || "" }, make("b", { title: name }, name), make("div", { class: "track" }, fill), make("span", {}, text));
  }));
}
const picture = (place) => "data:image/png;base64," + data.images[place];
/** A line as it is drawn in a diagram, for a legend. */
function sample(look) {
  const svg = drawn("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" });
  svg.append(look.area ? drawn("rect", { class: look.area, x: 0, y: 0, width: 24, height: 8 }) : drawn("path", { class: look.line, d: "M0 4H24" }));
  return svg;
}
