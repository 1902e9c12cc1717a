// State: the runs, the settings at which each is looked at, and what follows from them; whoever shows it is told.

const data = JSON.parse(byId("data").textContent);
const several = data.runs.length > 1;
for (const run of data.runs) {
  run.labelled = run.label.every((label) => label !== -2);
  for (const method of run.methods) {
    if (method.fixed) method.fixed = method.fixed.map(([prediction, radius, sigma = 0, limit = "", outcome = ""]) => ({ prediction, radius, sigma, limit, outcome, rival: null }));
  }
  const own = run.methods.find((method) => method.name === run.rule);
  for (const { number, told } of run.gallery) if (told) own.fixed[number].told = told;
}
/** One run at some settings. */
class Look {
  constructor(run) {
    this.run = run;
    this.settings = ownSettings(run);
    this.hearings = new Map();
    this.update();
  }
  get hearing() {
    const { step } = this.settings;
    if (!this.hearings.has(step)) this.hearings.set(step, new Hearing(this.run, step));
    return this.hearings.get(step);
  }
  /** Whether settings differ from those of the run. */
  get moved() { return JSON.stringify(this.settings) !== JSON.stringify(ownSettings(this.run)); }
  get own() { return this.methods.get(this.settings.rule) ?? this.methods.values().next().value; }
  get n() { return this.run.votes.steps[this.settings.step ?? this.run.votes.steps.length - 1]; }
  get fixed() { return this.fixedRadii ??= [fixedRadii(this.run, this.hearing, this.settings.alpha)]; }
  update() {
    this.methods = evaluated(this.run, this.hearing, this.settings);
    // What attacks left standing are certificates at the settings of the run; nobody attacked others.
    if (this.moved) for (const name of this.methods.keys()) if (name.endsWith(" attacked")) this.methods.delete(name);
    this.envelope = envelopeOf(this.methods, this.run.ids.length);
    this.fixedRadii = null;
  }
  /** Flags of an input under the own method. */
  flags(i) { return this.own.claims[i].told?.flags ?? flagsOf(this.run, this.settings.rule, i, this.own.claims[i], this.fixed[0]?.[i]); }
}
/** Whether any run is looked at otherwise than it was made; then those that are not say so. */
const anyMoved = () => state.looks.some((look) => look.moved);
const state = { place: 0, looks: data.runs.map((run) => new Look(run)), radius: 0.5, watchers: [] };
const current = () => state.looks[state.place];
/** Call this at once, and whenever settings change. */
function watch(draw) { state.watchers.push(draw); draw(); }
function changed() { for (const draw of state.watchers) draw(); }
function set(changes) {
  const look = current(), { alpha } = look.settings;
  Object.assign(look.settings, changes);
  if (look.settings.alpha !== alpha) forgetBounds();
  look.update();
  changed();
}
