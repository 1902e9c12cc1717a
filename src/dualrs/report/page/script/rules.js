// Rules: votes in, radii out, one input after the other. Each is that of its name in dualrs.certificates.

class LacksVotes extends Error {}
function demand(held, what) { if (!held) throw new LacksVotes(what); }

const gaussian = (sigma, p) => sigma * quantile(p);
const pair = (sigma, p, q) => sigma / 2 * (quantile(p) - quantile(q));
const above = (sigma, p, threshold) => sigma * (quantile(p) - quantile(threshold));
const below = (sigma, q, threshold) => sigma * (quantile(threshold) - quantile(q));
const falling = (experts) => [...experts].sort((a, b) => b.sigma - a.sigma);

/** What is claimed, from the radius of the class and that of what leads to it: the smaller one decides. */
function conclude(found) {
  const { y, sigma, rClass, rBefore, rival = null, rivals = "rival", doubt = "router undecided", terms } = found;
  const radius = Math.min(rClass, rBefore), certified = radius > 0;
  const byClass = rClass <= rBefore || rClass <= 0;
  const limit = byClass ? "class" : rival == null ? "router" : `${rivals} ${short(rival)}`;
  const outcome = certified ? "certified" : byClass ? "class undecided" : doubt;
  return { prediction: certified ? y : -1, radius: certified ? radius : 0, sigma, rClass, rBefore, limit, outcome, rival: byClass ? null : rival, selected: y, terms };
}

/** A radius within which a model gives an answer: what it states or, from votes, what a bound at a level gives. */
const answerRadius = (model, i, answer, level) => model.stays ? model.stays(i, answer) : gaussian(model.sigma, model.lower(i, answer, level));

/** What a network without noise states, by itself. */
function stated(core) {
  return (i) => {
    demand(core.voted(i), "an answer of the network without noise");
    return conclude({ y: core.answer[i], sigma: 0, rClass: core.radius[i], rBefore: Infinity });
  };
}

function cohen(votes, alpha) {
  return (i) => {
    demand(votes.voted(i), `votes at sigma ${short(votes.sigma)}`);
    const y = votes.top(i).class;
    return conclude({ y, sigma: votes.sigma, rClass: gaussian(votes.sigma, votes.lower(i, y, alpha)), rBefore: Infinity });
  };
}

/** The candidate that the router chose, and the class of its expert. */
function chosenOf(router, experts, i) {
  const chosen = router.top(i).class;
  demand(router.voted(i) && experts[chosen].voted(i), "votes of the expert that the router selected");
  return [chosen, experts[chosen].top(i).class];
}
function smallerOfTwo(router, experts, classLevel, routerLevel) {
  return (i) => {
    const [chosen, y] = chosenOf(router, experts, i), { sigma } = experts[chosen];
    return conclude({ y, sigma, rClass: answerRadius(experts[chosen], i, y, classLevel), rBefore: answerRadius(router, i, chosen, routerLevel) });
  };
}

function fusion(router, experts, alpha, byPair) {
  const count = experts.length, atRouter = count === 2 ? alpha / 2 : alpha / 4;
  const agreement = (i, expert, y, level) => !byPair || expert.stays ? answerRadius(expert, i, y, level)
    : pair(expert.sigma, expert.lower(i, y, level / 2), expert.upperOfOthers(i, y, level / 2));
  return (i) => {
    const [chosen, y] = chosenOf(router, experts, i), stands = answerRadius(router, i, chosen, atRouter);
    let rBefore = Infinity, weakest = 0;
    const terms = [];
    experts.forEach((expert, j) => {
      if (j === chosen) return;
      let exclusion = stands;
      if (count > 2 && !router.stays) {
        const q = router.upper(i, j, atRouter);
        exclusion = Math.max(pair(router.sigma, router.lower(i, chosen, atRouter), q), below(router.sigma, q, 1 / count));
      }
      const agrees = agreement(i, expert, y, alpha / 2);
      terms.push({ sigma: expert.sigma, agrees, exclusion });
      if (Math.max(agrees, exclusion) < rBefore) [rBefore, weakest] = [Math.max(agrees, exclusion), j];
    });
    const expert = experts[chosen];
    return conclude({ y, sigma: expert.sigma, rClass: agreement(i, expert, y, alpha), rBefore, rival: experts[weakest].sigma, terms });
  };
}

/** Stages are given the noisiest first, and last perhaps one without noise; thresholds are null where none is said. */
function cascade(stages, alpha, thresholds) {
  const count = stages.length, smoothed = stages.filter((stage) => !stage.stays).length, share = alpha / smoothed;
  const limit = (m) => thresholds[m] ?? null;
  const sure = (top, m) => top.votes > (limit(m) ?? 0.5) * top.total;
  return (i) => {
    let y = 0;
    for (let m = 0; m < count; m++) {
      const top = stages[m].top(i);
      demand(top.total > 0, `selection votes at sigma ${short(stages[m].sigma)}`);
      if (m === count - 1 || sure(top, m)) { y = top.class; break; }
    }
    const terms = stages.map((stage, m) => {
      if (stage.stays) return { sigma: 0, answers: stage.stays(i, y), blocked: stage.stays(i, y), voted: stage.voted(i) };
      const last = m === count - 1, majority = last && limit(m) == null && stage.answers > 2;
      const answers = majority ? pair(stage.sigma, stage.lower(i, y, share / 2), stage.upperOfOthers(i, y, share / 2))
        : above(stage.sigma, stage.lower(i, y, share), limit(m) ?? 0.5);
      return { sigma: stage.sigma, answers, blocked: below(stage.sigma, stage.upperOfOthers(i, y, share * (smoothed - m)), limit(m) ?? 0.5), voted: stage.sampled[i] > 0 };
    });
    let reach = Infinity, best = -Infinity, answering = 0;
    const reaches = terms.map((term) => { const here = reach; reach = Math.min(reach, term.blocked); return here; });
    terms.forEach((term, m) => { const whole = Math.min(term.answers, reaches[m]); if (whole > best) [best, answering] = [whole, m]; });
    if (best <= 0) {
      const blocking = terms.findIndex((term) => term.voted && term.blocked <= 0);
      answering = blocking >= 0 ? blocking : Math.max(terms.findLastIndex((term) => term.voted), terms.some((term) => term.voted) ? 0 : count - 1);
    }
    let rival = 0;
    for (let m = 1; m < answering; m++) if (terms[m].blocked < terms[rival].blocked) rival = m;
    return conclude({ y, sigma: stages[answering].sigma, rClass: terms[answering].answers, rBefore: reaches[answering],
      rival: stages[rival].sigma, rivals: "stage", doubt: "earlier stage undecided", terms });
  };
}

/** The cascade of Jeong and Shin: `levels` of a stage for passing it, `last` of the stage where it stopped. */
function descending(stages, levels, last, othersUpper) {
  return (i) => {
    let stop = stages.length - 1;
    for (let m = 0; m < stages.length; m++) {
      demand(stages[m].voted(i), `votes at sigma ${short(stages[m].sigma)}, which the cascade reaches`);
      if (!(stages[m].upper(i, stages[m].top(i).class, levels(m)) < 0.5)) { stop = m; break; }
    }
    const y = stages[stop].top(i).class, level = last(stop);
    let rBefore = Infinity, weakest = 0;
    const terms = [];
    for (let m = 0; m < stop; m++) {
      const reach = -gaussian(stages[m].sigma, othersUpper(stages[m], i, y, level));
      terms.push({ sigma: stages[m].sigma, blocked: reach });
      if (reach < rBefore) [rBefore, weakest] = [reach, m];
    }
    return conclude({ y, sigma: stages[stop].sigma, rClass: gaussian(stages[stop].sigma, stages[stop].lower(i, y, level)), rBefore,
      rival: stages[weakest].sigma, rivals: "stage", doubt: "earlier stage undecided", terms });
  };
}
const multiscale = (stages, alpha) => descending(stages, () => alpha / 2, () => alpha / 2, (stage, i, y, level) => stage.upperOfOthers(i, y, level));

/** The upper end of the authors of Multiscale: Goodman's interval over cells of five votes or more. */
function goodman(stage, i, y, level) {
  const others = stage.rows(i).filter(([answer]) => answer !== y).map(([, votes]) => votes).sort((a, b) => b - a);
  let cells = 1, largest = 0, last = 0, pool = 0;
  for (const votes of others) {
    pool += votes;
    if (pool < 5) continue;
    cells += 1;
    last = pool;
    largest = Math.max(largest, last);
    pool = 0;
  }
  largest = Math.max(largest, last + (cells > 1 ? pool : 0));
  if (cells <= 2) return 1 - stage.lower(i, stage.top(i).class, level);
  const n = Math.max(stage.sampled[i], 1), chi = quantile(level / cells) ** 2;
  return (2 * largest + chi + Math.sqrt(chi * chi + 4 * largest * chi * (1 - largest / n))) / (2 * (chi + n));
}
const multiscaleOfAuthors = (stages, alpha) => descending(stages, (m) => alpha / (m + 1), (stop) => alpha / (stop + 1), goodman);

function aces(selector, classifier, core, alpha, number, threshold) {
  const side = (i, choice) => {
    let votes = 0;
    for (const [answer, count] of selector.rows(i)) if ((answer <= number) === (choice === 0)) votes += count;
    return votes;
  };
  return (i) => {
    const { start, answer, count } = selector.selection;
    let low = 0, all = 0;
    for (let k = start[i]; k < start[i + 1]; k++) { all += count[k]; if (answer[k] <= number) low += count[k]; }
    const choice = 2 * low >= all ? 0 : 1, votes = side(i, choice);
    const rBefore = gaussian(selector.sigma, lower(votes, selector.sampled[i], alpha / 2));
    const chosen = { choice, chosenVotes: votes, threshold };
    if (choice === 0) {
      demand(classifier.voted(i), "votes of the classifier, which is selected");
      const y = classifier.top(i).class;
      return { ...conclude({ y, sigma: classifier.sigma, rClass: gaussian(classifier.sigma, classifier.lower(i, y, alpha / 2)), rBefore }), ...chosen };
    }
    demand(core.voted(i), "an answer of the core network, which is selected");
    const decided = rBefore > 0, y = core.answer[i];
    return { prediction: decided ? y : -1, radius: 0, sigma: 0, rClass: 0, rBefore, limit: decided ? "core" : "router",
      outcome: decided ? "predicted" : "router undecided", rival: null, selected: y, ...chosen };
  };
}
