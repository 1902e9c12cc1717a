// Gallery: the inputs of the run that is looked at, filtered, sorted and found.

const PAGE = 120;
const gallery = { flags: new Set(), text: "", order: "index", shown: PAGE, place: -1, list: [] };

/** The card of an input; it is made once, and what it says follows the settings. */
function card(input) {
  const look = current(), { run } = look, i = input.number, claim = look.own.claims[i];
  if (!input.card) {
    const answer = make("span"), radius = make("span");
    const button = make("button", { type: "button", "data-input": run.ids[i], onclick: () => openWhy(gallery.list, gallery.list.indexOf(input)) },
      input.image != null ? make("img", { src: picture(input.image), alt: "", loading: "lazy" }) : null,
      answer, radius, make("span", { class: "faint", title: run.ids[i] }, run.ids[i]));
    input.card = { node: make("li", {}, button), answer, radius };
  }
  const wrong = claim.prediction >= 0 && run.label[i] !== -2 && run.label[i] !== claim.prediction;
  input.card.answer.className = claim.prediction < 0 ? "faint" : wrong ? "bad" : "";
  input.card.answer.textContent = input.card.answer.title = claim.prediction < 0 ? "abstains" : named(run, claim.prediction);
  input.card.radius.textContent = claim.outcome === "certified" ? `${roundDown(claim.radius)} ${claim.sigma ? `at σ ${short(claim.sigma)}` : "without noise"}${look.own.guaranteed ? "" : ", no guarantee"}` : claim.outcome;
  return input.card.node;
}
function refresh() {
  const look = current(), { run } = look, every = run.gallery, claims = look.own.claims;
  if (gallery.place !== state.place) { gallery.place = state.place; gallery.flags.clear(); }
  const flags = new Map(every.map((input) => [input, look.flags(input.number)]));
  const text = gallery.text.trim().toLowerCase();
  const matches = ({ number: i }) => !text || [run.ids[i], named(run, run.label[i]), named(run, claims[i].selected ?? claims[i].prediction)].some((t) => t.toLowerCase().includes(text));
  const list = every.filter((input) => [...gallery.flags].every((flag) => flags.get(input).includes(flag)) && matches(input));
  const sign = { index: 0, rising: 1, falling: -1 }[gallery.order];
  if (sign) list.sort((a, b) => sign * (claims[a.number].radius - claims[b.number].radius) || a.number - b.number);
  const nodes = list.slice(0, gallery.shown).map(card), held = byId("cards").children;
  gallery.list = list;
  if (nodes.length !== held.length || nodes.some((node, k) => node !== held[k])) byId("cards").replaceChildren(...nodes);
  byId("found").textContent = `${list.length} of ${every.length} inputs.`;
  byId("gallery-note").textContent = run.gallery_notes.join(" ");
  byId("more").hidden = list.length <= gallery.shown;
  const wanted = data.flags.filter((flag) => gallery.flags.has(flag) || every.some((input) => flags.get(input).includes(flag)));
  const focused = document.activeElement?.dataset?.flag;
  byId("filters").replaceChildren(...wanted.map((flag) => make("button", { type: "button", "data-flag": flag, "aria-pressed": String(gallery.flags.has(flag)), onclick: () =>
    change(() => gallery.flags.has(flag) ? gallery.flags.delete(flag) : gallery.flags.add(flag)) }, `${flag} ${every.filter((input) => flags.get(input).includes(flag)).length}`)));
  if (focused) byId("filters").querySelector(`[data-flag="${focused}"]`)?.focus();
}
function change(update) { update(); gallery.shown = PAGE; refresh(); }
byId("order").addEventListener("change", (event) => change(() => { gallery.order = event.target.value; }));
byId("find").addEventListener("input", (event) => change(() => { gallery.text = event.target.value; }));
byId("more").addEventListener("click", () => { gallery.shown += PAGE; refresh(); });
watch(refresh);
