// Diagnostics: how far certificates reach, and what holds them down; all of it follows the settings.

/** A panel with a title and a caption under what it shows. */
function panel(key, title, what) {
  const body = make("div"), captions = make("div", { class: "small faint" });
  const node = make("div", { class: "panel", "data-diagnostic": key }, make("h3", {}, title), make("p", { class: "small faint" }, what), body, captions);
  byId("small-charts").append(node);
  return { node, body, captions };
}
const share = (numbers, x, inclusive) => percent(100 * countBelow(numbers, x, inclusive) / numbers.length);
const rising = (numbers) => Float64Array.from(numbers).sort();

/** Regret: the radius of the best sigma less that of the chosen one. */
function regrets(look) {
  const { run, hearing } = look, fixed = look.fixed[0];
  return run.kind === "dual" && fixed ? rising(fixed.map((radii, i) => Math.max(...radii) - radii[hearing.router.top(i).class])) : null;
}
/** Slack: the radius of the routing less that of the class, under rule paper. */
function slacks(look) {
  const { run, hearing, settings } = look;
  if (!["dual", "mixed"].includes(run.kind) || run.adaptive) return null;
  const claims = applied("paper", hearing, settings);
  return claims && rising(claims.map((claim) => Math.max(claim.rBefore, 0) - Math.max(claim.rClass, 0)));
}
/** The share of votes for the true class at the sigma that selection votes choose. */
function shares(look) {
  const { run, hearing } = look, found = [];
  const stages = falling(hearing.experts);
  for (let i = 0; i < run.ids.length; i++) {
    let expert = hearing.experts[0];
    if (["dual", "ace", "mixed"].includes(run.kind)) expert = hearing.candidates[hearing.router.top(i).class];
    else if (["cascade", "backed"].includes(run.kind)) expert = stages.find((stage, m) => { const top = stage.top(i); return m === stages.length - 1 || top.votes > 0.5 * top.total; });
    if (expert.stays) continue; // who sees no noise has no votes to count
    const truth = run.label[i] === -2 ? expert.top(i).class : run.label[i];
    if (expert.sampled[i]) found.push(expert.count(i, truth) / expert.sampled[i]);
  }
  return rising(found);
}
function distribution(key, title, label, zero, what, measure, caption) {
  const shown = panel(key, title, what), host = make("div", { class: "chart" });
  shown.body.append(host);
  const chart = new Chart(host, { label, what: title, height: 250, zero });
  watch(() => {
    const found = state.looks.map((look, place) => ({ look, place, numbers: measure(look) })).filter(({ numbers }) => numbers);
    shown.node.hidden = !found.length;
    chart.show(found.map(({ look, place, numbers }) => ({ label: look.run.name, look: { line: `p${place % 6} d${Math.floor(place / 6) % 4}` }, numbers, total: numbers.length })));
    shown.captions.replaceChildren(...found.map(({ look, numbers }) => make("p", {}, (several ? `${look.run.name}: ` : "") + caption(numbers))));
  });
}

const histogram = panel("radii", "Radii", "Inputs by certified radius under the rule that is looked at: right answers (green), and others (blue).");
watch(() => {
  const { own, run } = current(), size = 0.25;
  const furthest = Math.max(size, ...own.claims.map((claim) => claim.radius));
  const bins = Array.from({ length: Math.min(Math.floor(furthest / size) + 1, 40) }, () => [0, 0]);
  let none = 0;
  own.claims.forEach((claim, i) => {
    if (claim.radius > 0) bins[Math.min(Math.floor(claim.radius / size), bins.length - 1)][claim.prediction === run.label[i] ? 0 : 1]++;
    else none++;
  });
  const most = Math.max(none, ...bins.map(([right, wrong]) => right + wrong));
  histogram.body.replaceChildren(make("div", { class: "bars" }, ...[["none", [0, none]], ...bins.map((bin, k) => [`from ${short(k * size)}`, bin])].map(([name, [right, wrong]]) => {
    const parts = [make("div", { class: "right" }), make("div")];
    parts[0].style.width = 100 * right / most + "%";
    parts[1].style.width = 100 * wrong / most + "%";
    return make("div", {}, make("b", {}, name), make("div", { class: "track split" }, ...parts), make("span", {}, right && wrong ? `${right} + ${wrong}` : String(right + wrong)));
  })));
});
const best = panel("best", "Best sigma", "For how many inputs each sigma alone gives the true class its largest radius; none where no sigma certifies it.");
watch(() => {
  const found = state.looks.filter((look) => look.fixed[0]);
  best.node.hidden = !found.length;
  best.body.replaceChildren(...found.map((look) => {
    const { run } = look, counts = run.sigmas.map(() => 0);
    let none = 0;
    for (const radii of look.fixed[0]) { const most = Math.max(...radii); if (most > 0) counts[radii.indexOf(most)]++; else none++; }
    return make("div", {}, several ? make("p", { class: "small" }, run.name) : "",
      bars([...run.sigmas.map((sigma, k) => [`sigma ${short(sigma)}`, counts[k], `${counts[k]} (${percent(100 * counts[k] / run.ids.length)})`]), ["none", none, `${none} (${percent(100 * none / run.ids.length)})`]], run.ids.length));
  }));
});
distribution("regret", "Regret of the routing", "regret", null,
  "Share of inputs up to each regret: the radius of the best sigma less that of the chosen one, each as if alone.", regrets,
  (numbers) => `The chosen sigma is as good as any for ${share(numbers, 0, true)} of inputs.`);
distribution("slack", "Slack of the routing", "slack", 0,
  "Share of inputs up to each slack: the radius of the routing less that of the class, under rule paper.", slacks,
  (numbers) => `The routing limits the radius of ${share(numbers, 0, false)} of inputs.`);
distribution("p_a", "Votes for the true class", "share of votes", 0.5,
  "Share of inputs up to each share of votes that name the true class at the chosen sigma.", shares,
  (numbers) => `At most half of the votes name the true class for ${share(numbers, 0.5, true)} of inputs.`);
byId("diagnostics-note").textContent = data.runs.flatMap((run) => run.notes.map((note) => several ? `${run.name}: ${note}` : note)).join(" ");
