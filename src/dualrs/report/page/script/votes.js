// Votes: what the networks of a run answered, and bounds on how often they do.

// The share of a level that all looks of an adaptive run but the last spend together, each by its votes.
const EARLY = 0.25;

/** The votes of one network at one sigma as a rule reads them: up to a step, or with all looks where that is null. */
class Votes {
  constructor(packed, inputs, classes, looks, step, reached) {
    this.sigma = packed.sigma;
    this.bins = classes ? packed.answers / classes : 1;
    this.passes = reached > 0;
    this.classes = classes || packed.answers;
    this.answers = this.classes + this.passes;
    // A plan with one look has all of its level there.
    this.looks = step == null ? looks : [looks[step]];
    const last = this.looks.length - 1, early = this.looks.slice(0, last).reduce((sum, look) => sum + look, 0);
    this.shares = this.looks.map((look, k) => k < last ? EARLY * look / early : last ? 1 - EARLY : 1);
    const parts = looks.length; // in which votes are packed
    this.selection = this.read(packed.selection, inputs, 1, () => 0, reached);
    this.estimation = this.read(packed.estimation, inputs, parts, step == null ? (part) => part : (part) => part <= step ? 0 : -1, reached);
    if (this.looks.length > 1) {
      const { count } = this.estimation, size = this.looks.length;
      for (let k = 0; k < count.length; k++) if (k % size) count[k] += count[k - 1];
    }
    this.sampled = new Int32Array(inputs);
    for (let i = 0; i < inputs; i++) {
      for (let k = this.estimation.start[i]; k < this.estimation.start[i + 1]; k++) this.sampled[i] += this.at(k, this.looks.length - 1);
    }
  }
  /** Rows of answers with their counts in each place; pairs of class and bin become classes and passes. */
  read(rows, inputs, parts, place, reached) {
    const size = Math.max(place(parts - 1), 0) + 1, start = new Int32Array(inputs + 1), answers = [], counts = [];
    for (let i = 0; i < inputs; i++) {
      const row = rows[i], known = new Map();
      for (let j = 0; j < row.length; j += parts + 1) {
        const answer = row[j] % this.bins >= reached ? Math.floor(row[j] / this.bins) : this.classes;
        let at = known.get(answer);
        if (at == null) {
          at = answers.length;
          known.set(answer, at);
          answers.push(answer);
          for (let k = 0; k < size; k++) counts.push(0);
        }
        for (let part = 0; part < parts; part++) {
          const to = place(part);
          if (to >= 0) counts[at * size + to] += row[j + 1 + part];
        }
      }
      start[i + 1] = answers.length;
    }
    return { start, answer: Int32Array.from(answers), count: Int32Array.from(counts) };
  }
  at(entry, look) { return this.estimation.count[entry * this.looks.length + look]; }

  /** The class with most selection votes, the first of equals, and how many it has of how many. */
  top(i) {
    const { start, answer, count } = this.selection;
    let best = -1, most = 0, total = 0;
    for (let k = start[i]; k < start[i + 1]; k++) {
      total += count[k];
      if (answer[k] < this.classes && (count[k] > most || (count[k] === most && answer[k] < best))) [best, most] = [answer[k], count[k]];
    }
    return { class: Math.max(best, 0), votes: most, total };
  }
  voted(i) { return this.sampled[i] > 0 && this.selection.start[i + 1] > this.selection.start[i]; }
  /** Estimation votes for one answer. */
  count(i, y, look = this.looks.length - 1) {
    const { start, answer } = this.estimation;
    for (let k = start[i]; k < start[i + 1]; k++) if (answer[k] === y) return this.at(k, look);
    return 0;
  }
  /** The class but y with most estimation votes, the first of equals, and its votes. */
  runnerUp(i, y, look = this.looks.length - 1) {
    const { start, answer } = this.estimation;
    let best = -1, most = 0;
    for (let k = start[i]; k < start[i + 1]; k++) {
      const votes = this.at(k, look);
      if (answer[k] !== y && answer[k] < this.classes && (votes > most || (votes === most && votes && answer[k] < best))) [best, most] = [answer[k], votes];
    }
    return { class: Math.max(best, 0), votes: most };
  }
  /** The answers with estimation votes, and how many each has. */
  rows(i) {
    const { start, answer } = this.estimation, found = [];
    for (let k = start[i]; k < start[i + 1]; k++) if (this.at(k, this.looks.length - 1)) found.push([answer[k], this.at(k, this.looks.length - 1)]);
    return found;
  }
  bound(i, votes, level, bounded, none, best) {
    let value = none;
    for (let look = 0; look < this.looks.length && this.looks[look] <= this.sampled[i]; look++) {
      value = best(value, bounded(votes(look), this.looks[look], level * this.shares[look]));
    }
    return value;
  }
  lower(i, y, level) { return this.bound(i, (look) => this.count(i, y, look), level, lower, 0, Math.max); }
  upper(i, y, level) { return this.bound(i, (look) => this.count(i, y, look), level, upper, 1, Math.min); }
  upperOfOthers(i, y, level) { return this.bound(i, (look) => this.runnerUp(i, y, look).votes, level, upper, 1, Math.min); }
}

/** What a network without noise answers to each input, and the radius that it states; null where it states none. */
class Stated {
  constructor({ answer, radius }) {
    Object.assign(this, { sigma: 0, answer, radius });
    this.sampled = answer.map((one) => one >= 0 ? 1 : 0);
  }
  top(i) { return { class: Math.max(this.answer[i], 0), votes: this.sampled[i], total: this.sampled[i] }; }
  voted(i) { return this.sampled[i] > 0; }
  /** A radius within which it gives an answer. */
  stays(i, y) { return this.answer[i] === y ? this.radius[i] : -Infinity; }
}

/** The votes of a run at a number of votes, by network: of the router, and of the classifier at each sigma.

A network without noise is the `core`, which is the candidate of the router at sigma 0, or the router itself. */
class Hearing {
  constructor(run, step) {
    this.run = run;
    this.step = step;
    this.inputs = run.ids.length;
    this.known = new Map();
    const router = run.votes.networks.find((network) => network.stage === "router");
    const silent = (stage) => run.votes.without_noise[stage] && new Stated(run.votes.without_noise[stage]);
    this.router = router ? new Votes(router, this.inputs, 0, run.votes.steps, step, 0) : silent("router");
    this.experts = run.sigmas.map((sigma) => this.expert(sigma, 0));
    this.core = silent("class");
    this.candidates = run.candidates.map((sigma) => sigma ? this.expert(sigma, 0) : this.core);
  }
  /** The class votes at a sigma, where those below a confidence pass. */
  expert(sigma, confidence) {
    const key = `${sigma} ${confidence}`;
    if (!this.known.has(key)) {
      const packed = this.run.votes.networks.find((network) => network.stage === "class" && network.sigma === sigma);
      const reached = confidence ? this.run.confidences.indexOf(confidence) + 1 : 0;
      this.known.set(key, new Votes(packed, this.inputs, this.run.class_count, this.run.votes.steps, this.step, reached));
    }
    return this.known.get(key);
  }
}
