// Steps: the certificate of one input, from votes to radius, with its numbers and why each step is allowed.

/** The bound of the class behind a claim: its level, the bound, that of the other class where a pair is compared. */
function boundOf(look, i, claim) {
  const { hearing, settings } = look, { rule, alpha } = settings;
  const votes = heardAt(hearing, rule, claim.sigma, settings.sigmas), y = claim.selected, form = formOf(rule), split = splitOf(rule);
  const stages = [...settings.sigmas].sort((a, b) => b - a), m = stages.indexOf(claim.sigma);
  const one = (level, threshold = 0.5) => ({ votes, level, threshold, p: votes.lower(i, y, level), q: null });
  const two = (level) => ({ votes, level: level / 2, p: votes.lower(i, y, level / 2), q: votes.upperOfOthers(i, y, level / 2) });
  if (form) {
    const share = alpha / stages.length, threshold = form.thresholds[m] ?? null;
    return !backed(look.run) && m === stages.length - 1 && threshold == null && votes.answers > 2 ? two(share) : one(share, threshold ?? 0.5);
  }
  if (rule === "fusion-pair") return two(alpha);
  if (split) return one(alpha * split[0] / (split[0] + split[1]));
  if (rule === "multiscale" || rule.startsWith("aces-")) return one(alpha / 2);
  if (rule === "multiscale-authors") return one(alpha / (m + 1));
  return one(alpha);
}
/** The radius that follows from such a bound. */
const radiusOf = (bound) => bound.q != null ? pair(bound.votes.sigma, bound.p, bound.q) : above(bound.votes.sigma, bound.p, bound.threshold);

const REASONS = {
  selection: ["No selection vote enters any bound. What they choose is fixed before the bounds are made; a class that was chosen by the votes that measure it would look too good.",
    "The tempting way, and what is wrong with it"],
  bound: ["Of k among n independent votes, the bound of Clopper and Pearson lies on the wrong side of the true share with a probability of at most its level, whatever that share is.", "The rules"],
  radius: ["The quantity sigma Φ⁻¹(share of votes) changes by at most the distance by which the image is moved (Salman et al. 2019, Lemma 2). So an answer keeps its lead up to the distance at which it could have lost it.", "The predictor"],
  sigma: ["With one sigma there is one bound, at all of alpha (Cohen et al. 2019).", "The rules"],
  paper: ["The routing and the class each have a share of alpha; closer than both radii neither changes (Theorem 2 of the paper, a union bound).", "The rules"],
  nosplit: ["At the true shares one of the two radii is the smaller. To claim too much, the bound of that very one has to fail: both may have all of alpha.", "The rules"],
  fusion: ["Another sigma does harm only if the router might choose it and its expert might answer another class. To claim too much, the bounds of the one term that is truly the smallest have to fail.", "The rules"],
  cascade: ["Closer than the radius the stage answers, if it is reached, and no stage before it answers another class. To claim too much, a bound within one clause has to fail; the levels of each clause add up to at most alpha.", "The cascade"],
  multiscale: ["A stage that was passed costs radius: no other class may get its half there. Every bound is at alpha/2, as the noise of stages is independent.", "The rules of the peers"],
  "multiscale-authors": ["None: the levels of the authors add up to more than alpha, and their interval holds only as n grows.", "The rules of the peers"],
  ace: ["The router states by itself how far its choice stands, so that the class has all of alpha (Mueller et al. 2021).", "Networks without noise"],
  stated: ["A radius that a network states follows from its weights: no image closer than that is answered otherwise, rounding and all.", "Networks without noise"],
  aces: ["The choice and the class each have half of alpha: a union bound over the two.", "The rules of the peers"],
};
const why = (key) => make("details", { class: "small" }, make("summary", {}, "Why this holds"), make("p", {}, REASONS[key][0]),
  make("p", { class: "faint" }, `In full: docs/guarantees.md, “${REASONS[key][1]}”.`));
const rounded = (x) => String(+x.toFixed(5));

/** Selection, estimation, bound, radius, minimum: the steps of one certificate. */
function stepsOf(look, i, claim) {
  const { hearing, run, settings } = look, { rule } = settings, y = named(run, claim.selected), { router } = hearing;
  if (run.settled || claim.choice === 1) return [];
  const family = rule === "stated" ? "stated" : rule.startsWith("sigma-") ? "sigma" : rule.startsWith("fusion") ? "fusion" : splitOf(rule) ? "paper" : formOf(rule) ? "cascade" : rule.startsWith("aces-") ? "aces" : rule;
  if (!claim.sigma) {
    const states = claim.rClass > 0 ? `states that no image closer than ${roundDown(claim.rClass)} is answered otherwise` : "states no radius for it";
    return [["Statement", `${WITHOUT_NOISE} answers ${y} and ${states}. It sees no noise: nothing is estimated, and no alpha is spent.`, "stated"], minimum(look, claim, family)];
  }
  const bound = boundOf(look, i, claim), { votes } = bound, found = [];
  const chose = [];
  if (routes(rule) && router.stays) chose.push(`the router, which sees no noise, names ${candidateName(claim.sigma)} and states that it does so up to ${roundDown(router.radius[i])}`);
  else if (routes(rule)) { const top = router.top(i); chose.push(`${count(top.votes)} of ${count(top.total)} votes of the router name ${candidateName(run.candidates[top.class])}, so that ${run.candidates[top.class] ? "sigma" : "one"} is looked at`); }
  if (family === "aces") chose.push(`the selector finds an entropy up to ${short(claim.threshold)} more often than above, so the smoothed classifier answers`);
  if (family === "cascade" || family.startsWith("multiscale")) {
    for (const sigma of [...settings.sigmas].sort((a, b) => b - a)) {
      const top = heardAt(hearing, rule, sigma, settings.sigmas).top(i);
      if (!top.total) break;
      chose.push(`at sigma ${short(sigma)} ${count(top.votes)} of ${count(top.total)} name ${named(run, top.class)}`);
      if (top.votes > 0.5 * top.total) break;
    }
  } else { const top = votes.top(i); chose.push(`${count(top.votes)} of ${count(top.total)} votes at sigma ${short(claim.sigma)} name ${named(run, top.class)}`); }
  found.push(["Selection", `The first ${count(run.n0)} votes of a stream only choose: ${chose.join("; ")}. The class to certify is ${y}.`, "selection"]);
  const measured = [`${count(votes.count(i, claim.selected))} of ${count(votes.sampled[i])} votes at sigma ${short(claim.sigma)} are for ${y}`];
  if (routes(rule) && !router.stays) measured.push(`${count(router.count(i, run.candidates.indexOf(claim.sigma)))} of ${count(router.sampled[i])} votes of the router for sigma ${short(claim.sigma)}`);
  found.push(["Estimation", `Other votes measure: ${measured.join("; ")}.`, null]);
  found.push(["Bound", `At level ${rounded(bound.level)} the true share of ${y} is at least ${bound.p.toFixed(6)}${bound.q == null ? "" : `, and that of any other class at most ${bound.q.toFixed(6)}`}`
    + `${look.run.adaptive ? "; the level is shared among the looks" : ""}.`, "bound"]);
  const sigma = short(claim.sigma), z = (x) => quantile(x).toFixed(4), r = radiusOf(bound), written = Number.isFinite(r) ? r.toFixed(5) : "nothing";
  found.push(["Radius", bound.q != null ? `${sigma} / 2 × (Φ⁻¹(${bound.p.toFixed(4)}) − Φ⁻¹(${bound.q.toFixed(4)})) = ${sigma} / 2 × (${z(bound.p)} − ${z(bound.q)}) = ${written}.`
    : bound.threshold === 0.5 ? `${sigma} × Φ⁻¹(${bound.p.toFixed(4)}) = ${sigma} × ${z(bound.p)} = ${written}.`
      : `${sigma} × (Φ⁻¹(${bound.p.toFixed(4)}) − Φ⁻¹(${bound.threshold})) = ${sigma} × (${z(bound.p)} − ${z(bound.threshold)}) = ${written}.`, "radius"]);
  found.push(minimum(look, claim, family));
  return found;
}
/** The last step: the smallest of what has to hold. */
function minimum(look, claim, family) {
  const terms = termsOf(look, claim).map((term) => `${term.what}: ${term.upTo > 0 ? roundDown(term.upTo) : "not certain"}`);
  return ["Minimum", terms.length > 1 ? `All of this has to hold, so the smallest counts. ${terms.join("; ")}. ${claim.radius > 0 ? `The radius is ${roundDown(claim.radius)}.` : "It abstains."}`
    : claim.radius > 0 ? `There is nothing else that could change the answer: the radius is ${roundDown(claim.radius)}.` : "No radius is left: it abstains.", family];
}
function stepThrough(look, i, claim) {
  const steps = stepsOf(look, i, claim);
  if (!steps.length) return null;
  let at = 0;
  const body = make("div", { "aria-live": "polite" }), tabs = make("div", { class: "chips", role: "group", "aria-label": "Steps" });
  const next = make("button", { type: "button", onclick: () => go(at + 1) }, "Next step");
  function go(to) {
    at = to;
    const [name, text, key] = steps[at];
    tabs.replaceChildren(...steps.map(([one], k) => make("button", { type: "button", "aria-pressed": String(k === at), "data-step": one, onclick: () => { go(k); tabs.children[k].focus(); } }, `${k + 1}. ${one}`)));
    body.replaceChildren(make("h4", {}, name), make("p", {}, ...glossed(text)), ...(key ? [why(key)] : []));
    next.disabled = at === steps.length - 1;
  }
  go(0);
  return make("div", { class: "panel steps" }, make("h3", {}, "The certificate, step by step"), tabs, body, next);
}
