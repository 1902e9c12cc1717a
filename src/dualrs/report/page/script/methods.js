// Methods: rules by their names, applied to all inputs of a run at some settings.

/** Settings as the run was made: nothing moved. `sigmas` are those that cascades and fixed sigmas may use. */
function ownSettings(run) {
  return { rule: run.rule, alpha: run.alpha, step: run.adaptive ? null : run.votes.steps.length - 1, sigmas: [...run.sigmas] };
}
const numbersOf = (text) => text ? text.split(",").map(Number) : [];
/** Confidences and thresholds in the name of a cascade; null for another name. */
function formOf(name) {
  const found = /^cascade(?:-([^@]*))?(?:@(.*))?$/.exec(name);
  return found ? { confidences: numbersOf(found[1]), thresholds: numbersOf(found[2]) } : null;
}
function formName({ confidences, thresholds }) {
  const passing = [...confidences];
  while (passing.length && !passing[passing.length - 1]) passing.pop();
  return "cascade" + (passing.length ? `-${passing.join()}` : "") + (thresholds.length ? `@${thresholds.join()}` : "");
}
const splitOf = (name) => name === "paper" ? [1, 1] : /^paper-([0-9.]+):([0-9.]+)$/.exec(name)?.slice(1).map(Number);
const routes = (name) => /^(paper|nosplit|fusion|ace$)/.test(name);

/** Whether a cascade ends in a network without noise. */
const backed = (run) => run.kind === "backed";

/** The rule of a name on votes: a function from the number of an input to what is claimed. */
function ruleOf(name, hearing, { alpha, sigmas }) {
  const { run, router } = hearing;
  const used = hearing.experts.filter((expert) => sigmas.includes(expert.sigma));
  const form = formOf(name), split = splitOf(name);
  if (name.startsWith("sigma-") || name === "cohen") {
    const expert = name === "cohen" ? hearing.experts[0] : hearing.experts.find((one) => `sigma-${short(one.sigma)}` === name);
    return cohen(expert, alpha);
  }
  if (form) {
    const stages = falling(used).map((expert, m) => hearing.expert(expert.sigma, form.confidences[m] ?? 0));
    return cascade(backed(run) ? [...stages, hearing.core] : stages, alpha, form.thresholds);
  }
  if (name === "stated") return stated(hearing.core);
  if (split) return smallerOfTwo(router, hearing.candidates, alpha * split[0] / (split[0] + split[1]), alpha * split[1] / (split[0] + split[1]));
  if (name === "nosplit" || name === "ace") return smallerOfTwo(router, hearing.candidates, alpha, alpha);
  if (name === "fusion" || name === "fusion-pair") return fusion(router, hearing.candidates, alpha, name === "fusion-pair");
  if (name === "multiscale") return multiscale(falling(used), alpha);
  if (name === "multiscale-authors") return multiscaleOfAuthors(falling(used), alpha);
  if (name.startsWith("aces-")) {
    const threshold = +name.slice(5);
    return aces(router, hearing.experts[0], hearing.core, alpha, run.thresholds.indexOf(threshold), threshold);
  }
  throw new Error(`no rule ${name}`);
}

/** What a rule claims of every input, as columns; null where votes are lacking. */
function applied(name, hearing, settings) {
  const rule = ruleOf(name, hearing, settings), claims = [];
  try {
    for (let i = 0; i < hearing.inputs; i++) claims.push(rule(i));
  } catch (lacking) {
    if (lacking instanceof LacksVotes) return null;
    throw lacking;
  }
  return claims;
}

/** Every method of a run at some settings: its claims, and as what it counts in tables. */
function evaluated(run, hearing, settings) {
  const found = new Map(), { label } = run;
  const names = run.methods.map((method) => method.name);
  for (const name of names.includes(settings.rule) ? names : [...names, settings.rule]) {
    const about = run.methods.find((method) => method.name === name) ?? { ...titled(name), name, guaranteed: true };
    const own = name === settings.rule;
    let claims = null;
    if (about.fixed) claims = about.fixed;
    else if (name === "oracle") claims = oracle(found, run, settings);
    else if (!about.sigma || settings.sigmas.includes(about.sigma)) claims = applied(name, hearing, settings);
    if (!claims) continue;
    // At radius 0 what is claimed of the input alone counts too.
    const reach = Float64Array.from(claims, (claim, i) => claim.prediction >= 0 && claim.prediction === label[i] && (claim.radius > 0 || claim.outcome === "predicted") ? claim.radius : -1);
    found.set(name, { ...about, own, claims, reach, radii: reach.filter((r) => r >= 0).sort() });
  }
  return found;
}
function oracle(found, run, settings) {
  const fixed = [...found.values()].filter((method) => method.sigma && settings.sigmas.includes(method.sigma)).sort((a, b) => a.sigma - b.sigma);
  if (!fixed.length) return null;
  return run.ids.map((_, i) => {
    let best = null;
    for (const { claims, sigma } of fixed) {
      const right = claims[i].prediction >= 0 && claims[i].prediction === run.label[i] ? claims[i].radius : -1;
      if (!best || right > best.radius) best = { radius: right, sigma };
    }
    return { prediction: best.radius < 0 ? -1 : run.label[i], radius: Math.max(best.radius, 0), sigma: best.sigma, outcome: "" };
  });
}
/** The title of a method that the run does not list: another form of one that it does. */
function titled(name) {
  const form = formOf(name);
  if (!form) return { title: `dual, rule ${name}` };
  const words = (form.confidences.length ? `, votes pass below ${form.confidences.join()}` : "") + (form.thresholds.length ? `, thresholds ${form.thresholds.join()}` : "");
  return { title: `cascade, no router${words}` };
}
/** The radii of the best fixed sigma at each radius: the k-th largest is the largest k-th radius of any. */
function envelopeOf(found, inputs) {
  const fixed = [...found.values()].filter((method) => method.sigma);
  if (fixed.length < 2) return null;
  const rising = fixed.map(({ reach }) => Float64Array.from(reach, (r) => Math.max(r, 0)).sort());
  const best = [];
  for (let k = 0; k < inputs; k++) { const r = Math.max(...rising.map((radii) => radii[k])); if (r > 0) best.push(r); }
  return Float64Array.from(best);
}
/** How many of rising numbers are at least x. */
function countFrom(numbers, x) {
  let low = 0, high = numbers.length;
  while (low < high) { const middle = (low + high) >> 1; if (numbers[middle] < x) low = middle + 1; else high = middle; }
  return numbers.length - low;
}
