// Summary: what came out, as a sentence, a picture, a table, and differences with their intervals.

const OWN = ["own0", "own1", "own2", "own3", "own4", "own5"];
const THIN = ["thin t0", "thin t1", "thin t2", "thin t3", "thin t4"];
// The colours after those of the runs, then all of them with other dashes.
const other = (k) => `p${(state.looks.length + k) % 6} d${Math.floor((state.looks.length + k) / 6) % 4}`;
const legendOpen = new Set(); // runs whose other curves are listed
const chosen = new Set(); // curves that were switched on, and off if they begin with a minus
const plain = (method) => method.sigma ? `sigma ${short(method.sigma)}` : method.title;
const called = (method, run) => {
  const name = formOf(method.name) ? "the cascade" : method.name === "ace" ? "ACE" : routes(method.name) ? `the dual predictor (${method.name})`
    : method.sigma ? `sigma ${short(method.sigma)} alone` : method.name.startsWith("aces") ? `ACES (${method.name})` : method.title;
  return several ? `${name} of ${run.name}` : name;
};
const reached = (method, radius) => countFrom(method.radii, radius);
/** The fixed sigma that certifies most at a radius, the first of equals. */
function bestFixed(look, radius) {
  let best = null;
  for (const method of look.methods.values()) if (method.sigma && (!best || reached(method, radius) > reached(best, radius))) best = method;
  return best;
}

/** The cascade, which the votes of every run at several sigmas allow, where it is not the method of the run. */
const besideOwn = (look) => look.own.name === "cascade" || formOf(look.own.name) ? null : look.methods.get("cascade");

const claims = (method) => method.guaranteed ? " certifies " : " claims, without a guarantee, ";

function sentence(look) {
  const { run, own } = look, { radius } = state, total = run.ids.length;
  if (!run.labelled) {
    const many = own.claims.filter((claim) => claim.prediction >= 0 && claim.radius >= radius).length;
    return make("p", {}, `At L2 radius ${radius.toFixed(2)} `, strong(called(own, run)), claims(own), strong(`${count(many)} of ${count(total)}`), " inputs; without labels nobody knows which of them are right.");
  }
  const parts = [`At L2 radius ${radius.toFixed(2)} `, strong(called(own, run)), claims(own), strong(`${count(reached(own, radius))} of ${count(total)}`), " images"];
  const best = bestFixed(look, radius);
  if (best && best !== own) {
    const [low, high] = pairedInterval(own.reach, best.reach, radius), less = 100 * (reached(own, radius) - reached(best, radius)) / total;
    parts.push("; the best fixed sigma there, ", strong(short(best.sigma)), ", certifies ", strong(count(reached(best, radius))),
      ` (difference ${signed(less)} points, 95% interval ${signed(100 * low)} to ${signed(100 * high)})`);
  }
  const beside = besideOwn(look);
  if (beside) parts.push("; ", strong("the cascade"), ", which needs no router, ", strong(count(reached(beside, radius))));
  const oracle = look.methods.get("oracle"), attacked = [...look.methods.values()].find((method) => method.name === `${own.name} attacked`);
  if (oracle) parts.push("; whoever knew the best sigma of each image, ", strong(count(reached(oracle, radius))));
  if (attacked) parts.push("; attacks leave ", strong(count(reached(attacked, radius))), " unbroken");
  return make("p", {}, ...parts, ".");
}

/** All curves of the picture, those of each run together. */
function pictured() {
  const found = [];
  let others = 0;
  state.looks.forEach((look, place) => {
    const { run } = look, mine = (title) => several ? `${run.name} · ${title}` : title;
    if (!run.labelled) return;
    let thin = 0;
    const curve = (key, label, look_, numbers, on) => found.push({ key: `${place} ${key}`, run, label: mine(label), look: look_, numbers, total: run.ids.length, falling: true, on });
    const here = place === state.place;
    const oracle = look.methods.get("oracle");
    if (oracle) curve("oracle", "best sigma, told by the label", { area: "limit" }, oracle.radii, here);
    if (look.envelope) curve("envelope", data.envelope.title, { area: "reach" }, look.envelope, here);
    for (const method of look.methods.values()) {
      if (method === look.own || method === oracle) continue;
      if (method.sigma) curve(method.name, `sigma ${short(method.sigma)} alone`, { line: THIN[thin++ % THIN.length] }, method.radii, here);
      else curve(method.name, method.title, { line: other(others++) }, method.radii, here && (method === besideOwn(look) || method.name === `${look.own.name} attacked`));
    }
    curve(look.own.name, look.own.title, { line: OWN[place % OWN.length] }, look.own.radii, true);
    if (left(look)) for (const one of found) if (one.run === run) one.look = { line: `${one.look.line} left` };
  });
  for (const curve of found) curve.shown = chosen.has(curve.key) || (curve.on && !chosen.has(`-${curve.key}`));
  return found;
}
/** The interval of the difference to the best fixed sigma at each radius, put upon the latter's curve. */
function bandOf(look, steps = 60) {
  const { own, run } = look, furthest = Math.max(0, ...[...look.methods.values()].map((method) => method.radii[method.radii.length - 1] ?? 0));
  if (!bestFixed(look, 0) || own.sigma) return null;
  return Array.from({ length: steps + 1 }, (_, k) => {
    const radius = furthest * k / steps, best = bestFixed(look, radius);
    const [low, high] = pairedInterval(own.reach, best.reach, radius), base = 100 * reached(best, radius) / run.ids.length;
    return [radius, base + 100 * low, base + 100 * high];
  });
}
const accuracy = new Chart(byId("accuracy-chart"), { label: "L2 radius", what: "certified accuracy", height: 380 });
function drawPicture() {
  const curves = pictured(), look = current();
  const band = look.run.labelled ? bandOf(look) : null;
  accuracy.show(curves.filter((curve) => curve.shown), band);
  accuracy.mark(state.radius);
  const order = (curve) => /^own/.test(curve.look.line) ? 0 : /thin/.test(curve.look.line) ? 1 : curve.look.area ? 2 : 3;
  const chip = (curve) => make("button", { type: "button", "aria-pressed": String(curve.shown), "data-curve": curve.key, onclick: () => {
    chosen.delete(curve.shown ? curve.key : `-${curve.key}`);
    chosen.add(curve.shown ? `-${curve.key}` : curve.key);
    drawPicture();
    byId("legend").querySelector(`[data-curve="${curve.key}"]`).focus();
  } }, sample(curve.look), several ? curve.label.slice(curve.run.name.length + 3) : curve.label);
  byId("legend").replaceChildren(...state.looks.filter(({ run }) => run.labelled).map((one, place) => {
    const { run } = one, said = several && anyMoved() ? make("span", { class: "small faint" }, beside(one)) : null;
    const mine = curves.filter((curve) => curve.run === run).sort((a, b) => order(a) - order(b)), more = mine.filter((curve) => !curve.on);
    return make("div", { role: "group", "aria-label": `Curves of ${run.name}` }, several ? make("b", {}, run.name) : null, said, ...mine.filter((curve) => curve.on).map(chip),
      more.length ? make("details", { open: legendOpen.has(place), ontoggle: (event) => event.target.open ? legendOpen.add(place) : legendOpen.delete(place) },
        make("summary", { class: "small" }, `${more.length} more curves`), make("div", { class: "chips" }, ...more.map(chip))) : null);
  }));
  byId("band-note").hidden = !band;
}

const unfolded = new Set();
const rowsOf = (look) => {
  const every = [...look.methods.values()], beside = besideOwn(look);
  const first = [look.own, ...(beside ? [beside] : []), ...every.filter((method) => method.sigma && method !== look.own)];
  return [first, every.filter((method) => !first.includes(method))];
};
/** The methods of a table: what each has at the radii, and in the columns after them. */
function lines(look, methods, radii) {
  const total = look.run.ids.length;
  return methods.map((method) => ({
    name: method.title, own: method === look.own, bare: !method.guaranteed, method,
    cells: look.run.labelled ? radii.map((radius) => 100 * reached(method, radius) / total) : radii.map(() => null),
    rest: [percent(100 * method.claims.filter((claim) => claim.prediction < 0).length / total).slice(0, -1),
      look.run.labelled ? roundDown(method.reach.reduce((sum, r) => sum + Math.max(r, 0), 0) / total, 3) : "–",
      method.votes == null || look.moved ? "–" : count(method.votes)],
  }));
}
function envelopeLine(look, radii) {
  if (!look.envelope || !look.run.labelled) return [];
  const total = look.run.ids.length, any = (radius) => bestFixed(look, radius);
  return [{ name: data.envelope.title, bare: true, cells: radii.map((radius) => 100 * reached(any(radius), radius) / total), rest: ["–", "–", "–"] }];
}
const REST = ["abstained", "ACR", "votes"];
function drawTable() {
  const every = state.looks.map((look) => [...look.methods.values()]).flat();
  const furthest = Math.max(0, ...every.map((method) => method.radii[method.radii.length - 1] ?? 0));
  const radii = data.radii.slice(0, data.radii.filter((radius) => radius <= furthest).length + 1);
  const best = state.looks.map((look) => radii.map((radius) => Math.max(...state.looks.filter((other) => sameInputs(look.run, other.run))
    .flatMap((other) => [...other.methods.values()].filter((method) => method.guaranteed)).map((method) => 100 * reached(method, radius) / look.run.ids.length))));
  const narrow = byId("table").clientWidth < 760;
  const groups = state.looks.map((look, place) => {
    const [first, rest] = rowsOf(look), open = unfolded.has(place);
    const shown = [...lines(look, first, radii), ...envelopeLine(look, radii), ...(open ? lines(look, rest, radii) : [])];
    const fold = rest.length ? make("button", { type: "button", class: "fold", "aria-expanded": String(open), "data-fold": place, onclick: () => {
      open ? unfolded.delete(place) : unfolded.add(place);
      drawTable();
      byId("table").querySelector(`[data-fold="${place}"]`).focus();
    } }, open ? "show fewer" : `${rest.length} more methods`) : null;
    return { look, shown, fold, best: best[place] };
  });
  const cell = (line, k, marks) => make("td", { class: !line.bare && line.cells[k] != null && line.cells[k] === marks[k] && marks[k] > 0 ? "best" : null }, line.cells[k] == null ? "–" : line.cells[k].toFixed(1));
  const kind = (line) => line.bare ? "bare" : line.own ? "own" : null;
  byId("table").replaceChildren(...(narrow ? tall(groups, radii, cell, kind) : [wide(groups, radii, cell, kind)]));
}
/** Runs that cannot follow are grey as soon as another one is moved. */
const left = (look) => look.run.settled && anyMoved() ? "left" : null;
const sameInputs = (a, b) => a.data === b.data && a.ids.length === b.ids.length && a.ids.every((id, i) => id === b.ids[i]);
function wide(groups, radii, cell, kind) {
  const table = make("table", { class: "headline" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "method"),
    ...radii.map((radius) => make("th", { scope: "col" }, short(radius))), ...REST.map((name, k) => make("th", { scope: "col", class: k ? null : "gap" }, name)))));
  const body = make("tbody");
  for (const { look, shown, fold, best } of groups) {
    if (several) body.append(make("tr", { class: "group" }, make("th", { scope: "rowgroup" }, look.run.name), make("td", { class: "said", colspan: radii.length + 3 }, anyMoved() ? beside(look) : "")));
    for (const line of shown) {
      body.append(make("tr", { class: [kind(line), left(look)].filter((name) => name).join(" ") || null }, make("th", { scope: "row" }, line.name), ...line.cells.map((_, k) => cell(line, k, best)),
        ...line.rest.map((text, k) => make("td", { class: k ? null : "gap" }, text))));
    }
    if (fold) body.append(make("tr", {}, make("td", { colspan: radii.length + 4 }, fold)));
  }
  table.append(body);
  return table;
}
/** On a narrow screen radii go down, and a few methods stand side by side. */
function tall(groups, radii, cell, kind) {
  return groups.flatMap(({ look, shown, fold, best }) => {
    const most = Math.max(4, Math.floor((byId("table").clientWidth - 90) / 105)), size = Math.ceil(shown.length / Math.ceil(shown.length / most)), parts = [];
    for (let k = 0; k < shown.length; k += size) {
      const some = shown.slice(k, k + size);
      parts.push(make("table", { class: "headline tall" },
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "radius"), ...some.map((line) => make("th", { scope: "col", class: kind(line) }, line.method?.sigma ? `sigma ${short(line.method.sigma)}` : line.name)))),
        make("tbody", {}, ...radii.map((radius, r) => make("tr", {}, make("th", { scope: "row" }, short(radius)), ...some.map((line) => cell(line, r, best)))),
          ...REST.map((name, r) => make("tr", { class: r ? null : "line" }, make("th", { scope: "row" }, name), ...some.map((line) => make("td", {}, line.rest[r])))))));
    }
    return [several ? make("h3", { class: "group" }, anyMoved() ? `${look.run.name}: ${beside(look)}` : look.run.name) : null, ...parts, fold].filter((node) => node);
  });
}

let baseline = "";
const gaps = new Chart(byId("difference-chart"), { label: "L2 radius", what: "difference", height: 260, y: [-20, 20], unit: "" });
/** The own method less another, at the radii of the table and in between. */
function drawDifferences() {
  const look = current(), { run, own } = look, total = run.ids.length;
  const others = [...look.methods.values()].filter((method) => method !== own);
  byId("differences").hidden = !run.labelled || !others.length;
  if (byId("differences").hidden) return;
  if (!others.some((method) => method.name === baseline)) baseline = "";
  byId("baseline").replaceChildren(...(look.envelope ? [make("option", { value: "", selected: !baseline }, data.envelope.title)] : []),
    ...others.map((method) => make("option", { value: method.name, selected: method.name === baseline }, plain(method))));
  const base = (radius) => baseline || !look.envelope ? others.find((method) => method.name === (baseline || byId("baseline").value)) : bestFixed(look, radius);
  const difference = (radius) => {
    const other = base(radius), [low, high] = pairedInterval(own.reach, other.reach, radius);
    return [radius, 100 * (reached(own, radius) - reached(other, radius)) / total, 100 * low, 100 * high];
  };
  const furthest = Math.max(0.25, ...[...look.methods.values()].map((method) => method.radii[method.radii.length - 1] ?? 0));
  const along = Array.from({ length: 61 }, (_, k) => difference(furthest * k / 60));
  const most = Math.max(5, ...along.flatMap(([, , low, high]) => [-low, high])) * 1.05;
  gaps.y = [-most, most];
  gaps.show([{ label: "difference in points", look: { line: OWN[state.place % OWN.length] }, points: along.map(([x, y]) => [x, y]) }], along.map(([x, , low, high]) => [x, low, high]));
  byId("difference-table").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...["radius", "points", "95% interval"].map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...data.radii.filter((radius) => radius <= furthest).map((radius) => {
      const [, y, low, high] = difference(radius);
      return make("tr", { class: low > 0 ? "better" : high < 0 ? "worse" : null }, make("th", { scope: "row" }, short(radius)), make("td", {}, signed(y)), make("td", {}, `${signed(low)} to ${signed(high)}`));
    }))));
}
byId("baseline").addEventListener("change", (event) => { baseline = event.target.value; drawDifferences(); });

function drawSentence() {
  byId("sentence").replaceChildren(...state.looks.map(sentence));
  byId("radius-value").textContent = state.radius.toFixed(2);
}
byId("radius").addEventListener("input", (event) => {
  state.radius = +event.target.value;
  drawSentence();
  accuracy.mark(state.radius);
});
byId("reset").addEventListener("click", () => { set(ownSettings(current().run)); controls(); byId("rule").focus(); });
controls();
watch(standing);
watch(drawSentence);
watch(drawPicture);
watch(drawTable);
watch(drawDifferences);
let tableWidth = byId("table").clientWidth;
new ResizeObserver(() => { if (byId("table").clientWidth !== tableWidth) { tableWidth = byId("table").clientWidth; drawTable(); } }).observe(byId("table"));
