// Controls: sliders and switches for what follows the votes, and what a look at other settings is worth.

const ALPHAS = [-6, -5, -4, -3, -2].flatMap((power) => [1, 2, 5].map((digit) => +(digit * 10 ** power).toPrecision(3))).concat(0.1);
const SPLITS = ["9:1", "4:1", "2:1", "1:1", "1:2", "1:4", "1:9"];
const THRESHOLDS = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/** A slider over some values with the chosen one in words; values that a run has are among them. */
function slider(id, name, values, value, words, choose) {
  const shown = make("output", { for: id }, words(value));
  const range = make("input", { type: "range", id, min: 0, max: values.length - 1, step: 1, value: Math.max(values.indexOf(value), 0),
    "aria-valuetext": words(value), disabled: values.length < 2, oninput: () => {
      const chosen = values[+range.value];
      shown.textContent = words(chosen);
      range.setAttribute("aria-valuetext", words(chosen));
      choose(chosen);
    } });
  return make("div", { class: "control" }, make("label", { for: id }, name), range, shown);
}
function choice(id, name, options, value, choose) {
  const select = make("select", { id, onchange: () => choose(select.value) },
    ...options.map(([key, text]) => make("option", { value: key, selected: key === value }, text)));
  return make("div", { class: "control" }, make("label", { for: id }, name), select);
}
/** The rules that the votes of a run allow, each by the name of its family. */
function families(run) {
  const names = run.methods.filter((method) => !method.fixed && method.name !== "oracle").map((method) => method.name);
  const found = names.map((name) => splitOf(name) ? "paper" : formOf(name) ? "cascade" : name);
  if (found.includes("fusion") && run.class_count > 2) found.push("fusion-pair");
  return [...new Set(found)];
}
const familyOf = (name) => splitOf(name) ? "paper" : formOf(name) ? "cascade" : name;

function cascadeControls(look) {
  const { run, settings } = look, form = formOf(settings.rule);
  const sigmas = [...settings.sigmas].sort((a, b) => b - a), last = sigmas.length - 1;
  const byMajority = (m) => m === last && !backed(run); // unless it has a threshold, the last stage asks for no half
  function stage(m, changes) {
    const confidences = sigmas.map((_, k) => form.confidences[k] ?? 0), thresholds = sigmas.map((_, k) => form.thresholds[k] ?? null);
    if ("confidence" in changes) confidences[m] = changes.confidence;
    if ("threshold" in changes) thresholds[m] = m === last && !byMajority(m) && changes.threshold === 0.5 ? null : changes.threshold;
    if (thresholds[last] == null) thresholds.pop();
    while (thresholds.length <= last && thresholds.length && (thresholds[thresholds.length - 1] ?? 0.5) === 0.5) thresholds.pop();
    form.confidences = confidences;
    form.thresholds = thresholds.map((threshold) => threshold ?? 0.5);
    set({ rule: formName(form) });
  }
  return sigmas.flatMap((sigma, m) => {
    const words = (threshold) => threshold == null ? "majority" : `above ${threshold}`;
    const found = [slider(`threshold-${m}`, `stage ${short(sigma)} answers`, byMajority(m) ? [null, ...THRESHOLDS] : THRESHOLDS,
      form.thresholds[m] ?? (byMajority(m) ? null : 0.5), words, (threshold) => stage(m, { threshold }))];
    if (run.confidences.length) {
      found.push(slider(`confidence-${m}`, `stage ${short(sigma)} passes`, [0, ...run.confidences], form.confidences[m] ?? 0,
        (confidence) => confidence ? `below ${confidence}` : "never", (confidence) => stage(m, { confidence })));
    }
    return found;
  });
}
function sigmaControls(look) {
  const { run, settings } = look;
  if (run.sigmas.length < 2 || !run.methods.some((method) => formOf(method.name))) return null;
  const boxes = run.sigmas.map((sigma) => make("label", {}, make("input", { type: "checkbox", value: sigma, checked: settings.sigmas.includes(sigma),
    onchange: (event) => {
      const kept = run.sigmas.filter((one) => one === sigma ? event.target.checked : settings.sigmas.includes(one));
      if (!kept.length) { event.target.checked = true; return; }
      const form = formOf(settings.rule);
      set({ sigmas: kept, rule: form ? formName({ confidences: form.confidences.slice(0, kept.length), thresholds: form.thresholds.slice(0, kept.length) }) : settings.rule });
      controls();
    } }), ` ${short(sigma)}`));
  return make("fieldset", { class: "control boxes" }, make("legend", {}, "sigmas of cascades"), ...boxes);
}
/** Build the controls of the run that is shown; they stay as they are while one of them is moved. */
function controls() {
  const look = current(), { run, settings } = look;
  const alphas = [...new Set([...ALPHAS, run.alpha])].sort((a, b) => a - b);
  const family = familyOf(settings.rule), split = splitOf(settings.rule);
  const runs = several ? choice("run", "run", data.runs.map((one, k) => [String(k), one.name]), String(state.place), (k) => { state.place = +k; controls(); changed(); }) : null;
  byId("controls").replaceChildren(...(run.settled ? [runs] : [
    runs,
    choice("rule", "rule", families(run).map((name) => [name, name]), family, (name) => { set({ rule: name === familyOf(run.rule) ? run.rule : name }); controls(); }),
    slider("alpha", "alpha", alphas, settings.alpha, (alpha) => String(alpha), (alpha) => set({ alpha })),
    run.adaptive ? null : slider("n", "n", run.votes.steps.map((_, k) => k), settings.step, (k) => count(run.votes.steps[k]), (step) => set({ step })),
    split ? slider("split", "alpha, class : router", SPLITS, split.join(":"), (text) => text, (text) => set({ rule: text === "1:1" ? "paper" : `paper-${text}` })) : null,
    ...(family === "cascade" ? cascadeControls(look) : []),
    sigmaControls(look),
  ]).filter((node) => node));
}
const spoken = (look, settings) => {
  const { run } = look, parts = [`rule ${settings.rule}`, `alpha ${settings.alpha}`];
  parts.push(run.adaptive ? `adaptive, at most n ${count(look.n)}` : `n ${count(run.votes.steps[settings.step])}`);
  if (settings.sigmas.length < run.sigmas.length) parts.push(`sigmas ${settings.sigmas.join(", ")}`);
  return parts.join(", ");
};
/** At which settings a run is shown, where one of several was moved: the others do not follow. */
function beside(look) {
  if (look.moved) return `you look at ${spoken(look, look.settings)}`;
  return look.run.settled ? "cannot follow: shown at the settings of the run" : "at the settings of the run";
}
/** What is fixed by the run, and what is a look after the fact. */
function standing() {
  const look = current(), { run } = look, own = run.methods.find((method) => method.name === run.rule);
  const before = `Fixed by the run: ${spoken(look, ownSettings(run))}, n0 ${count(run.n0)}.`;
  byId("reset").hidden = !look.moved;
  byId("playing").hidden = Boolean(run.settled);
  byId("standing").classList.toggle("moved", look.moved);
  byId("standing").textContent = look.moved
    ? `${before} You look at: ${spoken(look, look.settings)}. This is a look after the fact: each number is right at its settings, but no guarantee covers settings that were chosen after seeing the votes.`
    : `${before} ${own ? `Its guarantee: ${own.guarantee}.` : ""} ${run.settled ? `${run.settled}.` : "Move anything to look at the same votes otherwise."}`;
}
