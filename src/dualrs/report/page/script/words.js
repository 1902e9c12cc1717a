// Words: what a claim says and what limits it, in the sentences of `dualrs why`.

const count = (number) => number.toLocaleString("en");
const named = (run, k) => k == null || k < 0 ? "unknown" : run.classes ? run.classes[k] : `class ${k}`;

function claimed(run, claim) {
  if (claim.prediction < 0) return `abstains: ${claim.outcome} ${claim.sigma ? `at sigma ${short(claim.sigma)}` : "without noise"}`;
  if (claim.outcome === "predicted") return `${named(run, claim.prediction)} without a radius (by the ${claim.limit})`;
  return `${named(run, claim.prediction)} within L2 radius ${roundDown(claim.radius)} (${claim.sigma ? `sigma ${short(claim.sigma)}` : "no noise"}, limited by ${claim.limit})`;
}
const WITHOUT_NOISE = "the network without noise";
const candidateName = (sigma) => sigma ? `sigma ${short(sigma)}` : WITHOUT_NOISE;
/** The class votes at a sigma as a rule hears them. */
function heardAt(hearing, name, sigma, sigmas) {
  const form = formOf(name);
  if (!form) return hearing.expert(sigma, 0);
  const place = [...sigmas].sort((a, b) => b - a).indexOf(sigma);
  return hearing.expert(sigma, form.confidences[place] ?? 0);
}
function forClass(hearing, name, i, claim, sigmas) {
  if (!claim.sigma) return `${WITHOUT_NOISE} answers ${named(hearing.run, claim.selected)} and states a radius of ${roundDown(claim.rClass)}`;
  const votes = heardAt(hearing, name, claim.sigma, sigmas), y = named(hearing.run, claim.selected);
  if (!votes.sampled[i]) return `no votes were taken for ${y}`;
  return `${count(votes.count(i, claim.selected))} of ${count(votes.sampled[i])} votes under sigma ${short(claim.sigma)} are for ${y}`;
}
const classLimits = (said, claim) => `The class limits it: ${said}; beyond ${roundDown(claim.rClass)} another class might win.`;
const undecided = (said) => `It abstains: ${said}, which is too few to show that it wins.`;

/** What limits a claim, in a sentence or two. */
function reason(hearing, name, i, claim, { sigmas }) {
  const { run } = hearing;
  if (name.startsWith("aces-")) return reasonOfAces(hearing, name, i, claim, sigmas);
  if (formOf(name) && !claim.sigma) return reasonOfLast(hearing, name, i, claim, sigmas);
  const said = forClass(hearing, name, i, claim, sigmas);
  if (claim.outcome === "class undecided") return claim.sigma ? undecided(said) : `It abstains: ${said}.`;
  if (routes(name)) {
    const dual = run.kind === "dual", routed = routing(hearing, i, claim);
    const holds = `${dual ? `under ${candidateName(claim.sigma)}` : "there"} the class stands up to ${roundDown(claim.rClass)}`;
    const rival = claim.rival == null ? `another ${dual ? "sigma" : "candidate"}` : `${candidateName(claim.rival)}, where another class might win`;
    if (claim.outcome === "router undecided") return `It abstains: ${routed}, and the true answer might be ${rival}; ${holds}.`;
    const beyond = roundDown(claim.rBefore);
    if (claim.limit === "class") return `${classLimits(said, claim)} A change of the routing does no harm up to ${beyond}.`;
    return `The routing limits it: ${routed}; beyond ${beyond} it might answer ${rival}. Yet ${holds}.`;
  }
  if (name.startsWith("sigma-") || name === "stated") return classLimits(said, claim);
  if (claim.rival == null) return classLimits(`${said}${runnerUp(hearing, name, i, claim, claim.sigma, sigmas)}`, claim);
  const before = comesFirst(hearing, name, i, claim, sigmas);
  if (claim.outcome === "earlier stage undecided") return `It abstains: another class might win at ${before}.`;
  return `A stage before limits it: beyond ${roundDown(claim.rBefore)} another class might win at ${before}. `
    + `Yet under sigma ${short(claim.sigma)} the class stands up to ${roundDown(claim.rClass)}.`;
}
/** How the router chose the candidate of a claim. */
function routing({ run, router }, i, claim) {
  const chosen = candidateName(claim.sigma);
  if (router.stays) return `the router names ${chosen}`;
  return `${count(router.count(i, run.candidates.indexOf(claim.sigma)))} of ${count(router.sampled[i])} votes of the router are for ${chosen}`;
}
/** The class other than the selected one with most votes at a stage, and how many pass there. */
function runnerUp(hearing, name, i, claim, sigma, sigmas) {
  const votes = heardAt(hearing, name, sigma, sigmas);
  if (!votes.sampled[i]) return "";
  const other = votes.runnerUp(i, claim.selected);
  const passed = votes.passes ? `, ${count(votes.count(i, votes.classes))} pass` : "";
  return ` (${count(other.votes)} are for ${named(hearing.run, other.class)}${passed})`;
}
const comesFirst = (hearing, name, i, claim, sigmas) =>
  `sigma ${short(claim.rival)}, which comes first${runnerUp(hearing, name, i, claim, claim.rival, sigmas)}`;
/** The same of a cascade whose last stage, without noise, answers. */
function reasonOfLast(hearing, name, i, claim, sigmas) {
  const y = named(hearing.run, claim.selected);
  if (claim.rClass <= 0) return `It abstains: no stage is sure enough of ${y}, and ${WITHOUT_NOISE} does not state it with a radius.`;
  const said = `${WITHOUT_NOISE} states ${y} up to ${roundDown(claim.rClass)}`;
  if (claim.rival == null) return classLimits(said, claim);
  const before = comesFirst(hearing, name, i, claim, sigmas);
  if (claim.outcome === "earlier stage undecided") return `It abstains: ${said}, but another class might win at ${before}.`;
  return `A stage before limits it: beyond ${roundDown(claim.rBefore)} another class might win at ${before}. Yet ${said}.`;
}
function reasonOfAces(hearing, name, i, claim, sigmas) {
  const byCore = claim.choice === 1, selector = hearing.router;
  const routed = `${count(claim.chosenVotes)} of ${count(selector.sampled[i])} votes of the selector find an entropy `
    + `${byCore ? "above" : "up to"} ${short(claim.threshold)}`;
  if (claim.outcome === "router undecided") return `It abstains: ${routed}, which is too few to show who answers.`;
  if (byCore) return `The core network answers, without noise and so without a radius: ${routed}.`;
  const said = forClass(hearing, name, i, claim, sigmas);
  if (claim.outcome === "class undecided") return undecided(said);
  const beyond = roundDown(claim.rBefore);
  if (claim.limit === "class") return `${classLimits(said, claim)} A change of the routing does no harm up to ${beyond}.`;
  return `The routing limits it: ${routed}; beyond ${beyond} it might answer with the core network, which has no radius. `
    + `Yet under sigma ${short(claim.sigma)} the class stands up to ${roundDown(claim.rClass)}.`;
}

/** The radius of each sigma alone for the true class, any class without a label; null if some sigma did not vote. */
function fixedRadii(run, hearing, alpha) {
  if (run.adaptive || run.settled || run.sigmas.length < 2) return null;
  const every = hearing.experts.map((expert) => cohen(expert, alpha));
  if (run.ids.some((_, i) => hearing.experts.some((expert) => !expert.voted(i)))) return null;
  return run.ids.map((_, i) => every.map((rule) => {
    const claim = rule(i);
    return run.label[i] === -2 || claim.prediction === run.label[i] ? claim.radius : 0;
  }));
}
/** The sigma with the largest radius, the chosen one among equals; null if no sigma has any. */
function bestSigma(run, fixed, claim) {
  const most = Math.max(...fixed);
  if (most <= 0) return null;
  return fixed[run.sigmas.indexOf(claim.sigma)] === most ? claim.sigma : run.sigmas[fixed.indexOf(most)];
}
/** Which filters of the gallery an input passes. */
function flagsOf(run, name, i, claim, fixed) {
  const routed = routes(name), best = fixed && routed ? bestSigma(run, fixed, claim) : null;
  const passed = {
    "limited by router": claim.limit === "router",
    "limited by rival": claim.rival != null && routed,
    "limited by an earlier stage": claim.rival != null && !routed,
    "answered by the core": claim.limit === "core",
    "abstained": claim.prediction < 0,
    "mis-routed": run.kind === "dual" && best != null && best !== claim.sigma,
    "wrong": claim.prediction >= 0 && run.label[i] !== -2 && run.label[i] !== claim.prediction,
  };
  return data.flags.filter((flag) => passed[flag]);
}
