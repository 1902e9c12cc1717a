// Why: one input, its image, its votes, its radii, and what limits its certificate at the settings that are looked at.

/** The most frequent answers of votes with their names, the sum of all others, and what passes. */
function topClasses(votes, i, shown = 5) {
  const { run } = current(), rows = votes.rows(i).sort(([a, x], [b, y]) => y - x || a - b);
  const own = rows.filter(([answer]) => answer < votes.classes), passed = rows.find(([answer]) => answer === votes.classes);
  const rest = own.slice(shown).reduce((sum, [, many]) => sum + many, 0);
  return [...own.slice(0, shown).map(([answer, many]) => [named(run, answer), many, answer]),
    ...(rest ? [["others", rest, null]] : []), ...(passed ? [["pass", passed[1], null]] : [])];
}
/** Where certificate and attack stand: what is certified, then what nothing is known about. */
function scale(found) {
  const end = Math.max(found.reach, found.radius) || 1, known = make("div", { class: "known" }), open = make("div", { class: "open" });
  known.style.width = 100 * Math.min(found.radius, found.reach) / end + "%";
  open.style.width = 100 * (found.reach - Math.min(found.radius, found.reach)) / end + "%";
  return make("div", { class: "scale" }, make("div", { class: "range", "aria-hidden": "true" }, known, open),
    make("div", { class: "small" }, make("span", {}, `certified ${roundDown(found.radius)}`),
      make("span", {}, found.upper ? `broken at ${found.upper}` : `not broken up to ${roundDown(found.reach)}`)));
}
function attacked(found) {
  const shown = (place, text) => place == null ? null : make("figure", {}, make("img", { src: picture(place), alt: text }), make("figcaption", { class: "small faint" }, text));
  return make("div", { class: "panel attack" }, make("h3", {}, `Attack on ${found.method}`), make("p", {}, found.said), scale(found),
    make("div", { class: "pictures" }, shown(found.image, `answered with ${found.answer}`), shown(found.difference, `the difference, times ${found.times}`)));
}
const UNCERTIFIED = "claimed, no guarantee";
/** The radii behind a claim by name, none below zero; then those of each sigma alone. */
function radiiOf(look, i, claim) {
  if (claim.told) return claim.told.radii.map(([name, radius], k) => [name, radius, k ? "" : "on"]);
  const found = [[look.own.guaranteed ? "certified" : UNCERTIFIED, claim.radius, "on"], ["class", Math.max(claim.rClass, 0)]];
  if (Number.isFinite(claim.rBefore)) found.push([routes(look.settings.rule) || look.run.kind === "aces" ? "routing" : "stages before", Math.max(claim.rBefore, 0)]);
  look.fixed[0]?.[i].forEach((radius, k) => found.push([`${look.run.label[i] === -2 ? "" : "label at "}sigma ${short(look.run.sigmas[k])}${look.run.label[i] === -2 ? " alone" : ""}`, radius]));
  return found;
}
function votesPanel(title, rows, total, truth, on) {
  return make("div", { class: "panel" + (on ? " chosen" : "") }, make("h3", {}, title),
    rows ? bars(rows.map(([name, many, answer]) => [name, many, count(many), answer != null && answer === truth ? "truth" : ""]), total)
      : make("p", { class: "faint small" }, "not asked: its votes could not change the certificate"));
}
/** What a network without noise answers and, if it states one, up to which radius. */
function statedPanel(title, model, i, named, on) {
  const upTo = model.radius ? `, up to ${roundDown(model.radius[i])}` : "";
  return make("div", { class: "panel" + (on ? " chosen" : "") }, make("h3", {}, `${title}, without noise`), make("p", {}, named(model.answer[i]) + upTo));
}
/** What is said of an input: everything under its title. */
function explained(input) {
  const look = current(), { run, hearing, settings, own } = look, i = input.number, claim = own.claims[i], label = run.label[i];
  const flags = look.flags(i), text = claim.prediction < 0 ? "abstains" : named(run, claim.prediction);
  const says = claim.outcome === "certified" ? ` within L2 radius ${roundDown(claim.radius)}${own.guaranteed ? "" : ", without a guarantee"}` : claim.outcome === "predicted" ? " without a radius" : `: ${claim.outcome}`;
  const radii = radiiOf(look, i, claim), methods = [...look.methods.values()];
  const longest = Math.max(...radii.map(([, r]) => r), ...methods.map((method) => method.claims[i].radius));
  const used = run.sigmas.filter((sigma) => routes(settings.rule) || settings.sigmas.includes(sigma));
  return [
    make("div", { class: "top" },
      input.image != null ? make("img", { src: picture(input.image), alt: `Image of input ${run.ids[i]}` }) : null,
      make("div", {},
        make("p", {}, make("strong", { class: flags.includes("wrong") ? "bad" : claim.prediction < 0 ? "faint" : "" }, text), says,
          claim.sigma ? ` · sigma ${short(claim.sigma)}` : claim.outcome === "predicted" ? " · by the core network" : claim.choice == null ? ` · ${WITHOUT_NOISE}` : "", ` · label: ${label === -2 ? "unknown" : named(run, label)}`),
        make("p", { id: "why-reason" }, ...glossed(claim.told?.reason ?? reason(hearing, settings.rule, i, claim, settings))),
        flags.length ? make("p", { class: "small faint" }, flags.join(" · ")) : null,
        look.moved ? make("p", { class: "small moved" }, `A look after the fact: ${spoken(look, settings)}.`) : null)),
    make("div", { class: "grid" },
      seeing(look, input), path(look, i, claim), stepThrough(look, i, claim),
      make("div", { class: "panel" }, make("h3", {}, "Radii"), bars(radii.map(([name, r, kind]) => [name, r, roundDown(r), kind]), longest)),
      hearing.router?.stays && routes(settings.rule) ? statedPanel("Router", hearing.router, i, (answer) => candidateName(run.candidates[answer])) : null,
      hearing.router && !hearing.router.stays ? votesPanel(`${run.router_name[0].toUpperCase()}${run.router_name.slice(1)} votes at sigma ${short(hearing.router.sigma)}`,
        run.route_names.map((name, k) => [name, hearing.router.count(i, k), null]), hearing.router.sampled[i]) : null,
      hearing.core?.sampled[i] ? statedPanel("Core network", hearing.core, i, (answer) => named(run, answer), !claim.sigma) : null,
      ...(claim.told ? claim.told.sigmas.map((sigma, k) => votesPanel(`Class votes at sigma ${short(sigma)}`, topClasses(hearing.experts[k], i), hearing.experts[k].sampled[i], label, sigma === claim.sigma)) : used.map((sigma) => {
        const votes = heardAt(hearing, settings.rule, sigma, settings.sigmas);
        return votesPanel(`Class votes at sigma ${short(sigma)}`, votes.sampled[i] ? topClasses(votes, i) : null, votes.sampled[i], label, sigma === claim.sigma);
      })),
      make("div", { class: "panel wide" }, make("h3", {}, "By method"), bars(methods.map((method) => {
        const { prediction, radius } = method.claims[i];
        return [method.name, radius, prediction < 0 ? "abstains" : `${roundDown(radius)} ${named(run, prediction)}${method.guaranteed ? "" : ", no guarantee"}`, prediction === label ? "truth" : ""];
      }), longest)),
      ...input.attacks.map(attacked)),
  ];
}
/** Open the input at a place of a list. */
function openWhy(list, place) {
  const input = list[place], dialog = byId("why"), { run } = current();
  const step = (by, name, label) => make("button", { type: "button", "aria-label": label, disabled: !list[place + by], onclick: () => openWhy(list, place + by) }, name);
  dialog.replaceChildren(make("div", { class: "why" },
    make("header", {}, make("h2", { id: "why-title" }, `Input ${run.ids[input.number]}`), step(-1, "←", "Previous input"), step(1, "→", "Next input"),
      make("button", { type: "button", "aria-label": "Close", onclick: () => dialog.close() }, "✕")),
    ...explained(input)));
  dialog.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && event.target.type !== "range" && list[place + by]) { event.preventDefault(); openWhy(list, place + by); }
  };
  if (!dialog.open) dialog.showModal();
}
byId("why").addEventListener("click", (event) => { if (event.target === byId("why")) byId("why").close(); });
