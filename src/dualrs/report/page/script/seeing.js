// Seeing: what noise and distance look like on an input, and up to which distance its answer is certain.

/** Everything that has to hold for the answer of an input, and up to which distance it does; the smallest is the radius. */
function termsOf(look, claim) {
  const { run, settings: { rule } } = look, y = named(run, claim.selected), at = candidateName;
  if (run.settled) return (claim.told?.terms ?? []).map(([what, upTo]) => ({ what, upTo }));
  if (claim.choice === 1) return [];
  const stage = formOf(rule) || rule.startsWith("multiscale");
  const own = { what: `${stage && claim.sigma ? "stage " : ""}${at(claim.sigma)} answers ${y}`, upTo: claim.rClass };
  if (rule.startsWith("aces-")) return [own, { what: `the selector finds an entropy up to ${short(claim.threshold)}`, upTo: claim.rBefore }];
  if (rule.startsWith("fusion")) {
    return [own, ...claim.terms.map((term) => ({ upTo: Math.max(term.agrees, term.exclusion), what: term.agrees >= term.exclusion
      ? `${at(term.sigma)}, if the router chooses it, answers ${y} too` : `the router does not choose ${at(term.sigma)}` }))];
  }
  if (routes(rule)) return [own, { what: `the router chooses ${at(claim.sigma)}`, upTo: claim.rBefore }];
  if (stage) return [own, ...claim.terms.filter((term) => term.sigma > claim.sigma).map((term) => ({ what: `stage ${at(term.sigma)}, which comes first, answers no class but ${y}`, upTo: term.blocked }))];
  return [own];
}
/** Whether the answer is certain at a distance, and if not, because of what. */
function certainty(look, claim, distance) {
  const at = `At distance ${distance.toFixed(2)}`, terms = termsOf(look, claim), words = (term) => `${term.what} (${term.upTo > 0 ? `certain up to ${roundDown(term.upTo)}` : "not even here"})`;
  if (!look.own.guaranteed) return `${at} nothing is guaranteed: ${look.own.guarantee.replace(/^none[^:]*: /, "")}.`;
  if (claim.outcome === "predicted") return `${at} nothing is said: the core network answers, and its claim is about the input alone.`;
  if (claim.radius > distance) return `${at} the answer is still certain.`;
  const failing = terms.filter((term) => term.upTo <= distance).sort((a, b) => a.upTo - b.upTo);
  return `${at} it is ${claim.radius > 0 ? "no longer" : "not"} certain that ${failing.map(words).join("; nor that ")}.`;
}

/** Normal numbers of a seed (xorshift, then Box and Muller), so that a picture stays the same while a slider moves. */
function normals(seed, size) {
  let s = (seed * 2654435761 + 88172645) | 0;
  const uniform = () => { s ^= s << 13; s ^= s >>> 17; s ^= s << 5; return ((s >>> 0) + 0.5) / 4294967296; };
  return Float64Array.from({ length: size }, () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()));
}
/** The colours of a picture, three for each pixel, and its size. */
function pixelsOf(place) {
  return new Promise((done) => {
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas", { width: image.naturalWidth, height: image.naturalHeight }), pen = canvas.getContext("2d");
      pen.drawImage(image, 0, 0);
      const { data: all } = pen.getImageData(0, 0, canvas.width, canvas.height);
      done({ width: canvas.width, height: canvas.height, levels: Float64Array.from({ length: 3 * canvas.width * canvas.height }, (_, k) => all[4 * Math.floor(k / 3) + k % 3]) });
    };
    image.src = picture(place);
  });
}
/** A canvas that shows levels changed by something. */
function changedPicture(base) {
  const canvas = make("canvas", { width: base.width, height: base.height, role: "img" }), text = make("figcaption", { class: "small faint" });
  const show = (change, words) => {
    const shown = new ImageData(base.width, base.height);
    for (let k = 0; k < base.levels.length; k++) shown.data[4 * Math.floor(k / 3) + k % 3] = base.levels[k] + change(k);
    for (let k = 3; k < shown.data.length; k += 4) shown.data[k] = 255;
    canvas.getContext("2d").putImageData(shown, 0, 0);
    text.textContent = words;
    canvas.setAttribute("aria-label", words);
  };
  return { node: make("figure", {}, canvas, text), show };
}
/** A slider of the distance, what is certain there, and the image at that distance; noisy copies beside it. */
function seeing(look, input) {
  const claim = look.own.claims[input.number], found = input.attacks.find((attack) => attack.image != null);
  const furthest = Math.max(0.5, 1.5 * claim.radius, found ? 1.1 * found.reach : 0);
  const said = make("p", { role: "status" }), shown = make("output", { for: "distance" });
  const pictures = make("div", { class: "pictures" }), marks = make("ul", { class: "terms small" });
  const moves = [];
  const range = make("input", { type: "range", id: "distance", min: 0, max: furthest.toFixed(2), step: 0.01, value: Math.floor(100 * claim.radius) / 100, oninput: () => move() });
  function move() {
    const distance = +range.value;
    shown.textContent = distance.toFixed(2);
    said.textContent = certainty(look, claim, distance);
    marks.replaceChildren(...(look.own.guaranteed ? termsOf(look, claim) : []).map((term) => make("li", { class: term.upTo > distance ? "holds" : "fails" },
      `${term.upTo > distance ? "✓" : "✗"} ${term.what}: ${term.upTo === Infinity ? "always" : term.upTo > 0 ? `up to ${roundDown(term.upTo)}` : "not certain"}`)));
    for (const draw of moves) draw(distance);
  }
  move();
  if (input.image != null) {
    Promise.all([pixelsOf(input.image), found ? pixelsOf(found.image) : null]).then(([base, broken]) => {
      const noise = normals(input.number + 1, base.levels.length), length = Math.hypot(...noise) / 255;
      const random = changedPicture(base);
      moves.push((distance) => random.show((k) => noise[k] * distance / length, `at distance ${distance.toFixed(2)}, in a random direction`));
      pictures.append(random.node);
      if (broken) {
        const change = broken.levels.map((level, k) => level - base.levels[k]), attack = changedPicture(base);
        moves.push((distance) => attack.show((k) => change[k] * distance / found.reach, `at distance ${distance.toFixed(2)}, where the attack on ${found.method} went`
          + (distance >= found.reach ? `: answered with ${found.answer}` : "")));
        pictures.append(attack.node);
      }
      for (const sigma of input.copies.length ? [] : claim.told?.sigmas ?? look.run.sigmas) {
        const noisy = changedPicture(base);
        noisy.show((k) => 255 * sigma * noise[k], `noise of sigma ${short(sigma)}: an illustration, not the noise that voted`);
        pictures.append(noisy.node);
      }
      move();
    });
  }
  const seen = (place, words) => place == null ? null : make("figure", {}, make("img", { src: picture(place), alt: words }), make("figcaption", { class: "small faint" }, words));
  const copies = input.copies.flatMap(({ sigma, noisy, denoised }) => [seen(noisy, `the first copy that voted at sigma ${short(sigma)}`), seen(denoised, "what the denoiser made of it")]);
  return make("div", { class: "panel seeing" }, make("h3", {}, "See the radius"),
    make("div", { class: "control" }, make("label", { for: "distance" }, "distance"), range, shown), said, marks, pictures,
    copies.length ? make("div", { class: "pictures" }, ...copies) : null);
}
/** The stage of a cascade that sees no noise: what it states. */
function lastStage({ hearing: { core }, run }, i, claim) {
  if (!core.sampled[i]) return make("li", { class: "later" }, strong(WITHOUT_NOISE), " was not asked");
  return make("li", { class: claim.sigma ? "later" : "here" }, strong(`${WITHOUT_NOISE} `), `answers ${named(run, core.answer[i])}, certain up to ${roundDown(core.radius[i])}: `,
    make("em", {}, claim.sigma ? "comes after the answer" : claim.prediction >= 0 ? "answers" : "stops it"));
}
/** The stages of a cascade as a path, the noisiest first: what each says, and where it stops. */
function path(look, i, claim) {
  const { hearing, run, settings } = look, { rule } = settings;
  if (!formOf(rule) && !rule.startsWith("multiscale")) return null;
  const steps = [...settings.sigmas].sort((a, b) => b - a).map((sigma) => {
    const votes = heardAt(hearing, rule, sigma, settings.sigmas), term = claim.terms.find((one) => one.sigma === sigma);
    const answers = sigma === claim.sigma, later = sigma < claim.sigma;
    if (!votes.sampled[i]) return make("li", { class: "later" }, strong(`sigma ${short(sigma)}`), " was not asked");
    const y = `${count(votes.count(i, claim.selected))} of ${count(votes.sampled[i])} votes for ${named(run, claim.selected)}`, other = votes.runnerUp(i, claim.selected);
    const rival = other.votes ? `, ${count(other.votes)} for ${named(run, other.class)}` : "", passed = votes.passes ? `, ${count(votes.count(i, votes.classes))} pass` : "";
    const verdict = later ? "comes after the answer" : answers ? (claim.prediction >= 0 ? `answers, certain up to ${roundDown(claim.rClass)}` : "stops it: not sure enough")
      : term && term.blocked > 0 ? `lets it pass: sure of no other class up to ${roundDown(term.blocked)}` : "might answer another class";
    return make("li", { class: answers ? "here" : later ? "later" : "before" }, strong(`sigma ${short(sigma)} `), `${y}${rival}${passed}: `, make("em", {}, verdict));
  });
  if (backed(run) && formOf(rule)) steps.push(lastStage(look, i, claim));
  return make("div", { class: "panel wide" }, make("h3", {}, "The path through the stages"), make("ol", { class: "path small" }, ...steps));
}
