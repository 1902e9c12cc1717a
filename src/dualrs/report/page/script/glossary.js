// Glossary: words that are explained where they stand, on a touch or a press; those of docs/glossary.md.

const GLOSSARY = {
  vote: "The answer of a network to one noisy copy of an input: a sigma (router) or a class (classifier).",
  stream: "The sequence of votes of one network on one input: a stage, a part and a sigma.",
  rule: "The formula that turns votes into a class and a radius, such as `fusion`. It is fixed before the votes.",
  look: "A number of votes, fixed before the run, at which an adaptive run may read its bounds and stop.",
  router: "The network that picks the noise level of an input. The paper calls it the variance estimator.",
  expert: "The classifier at one candidate sigma: one network for all sigmas, or a network for each.",
  rival: "A sigma that the router might choose nearby, and whose expert might answer another class.",
  cascade: "A classifier at several sigmas without a router. The noisiest stage that is sure of a class answers.",
  pass: "A vote for no class, where the network is less sure than the stage's confidence asks.",
  sigma: "The standard deviation of the noise, in units of pixel values in [0, 1].",
  radius: "The L2 distance, in pixel values in [0, 1], closer than which no image is answered otherwise.",
  alpha: "The probability with which one certificate may be issued and be false, at most.",
};
const WORDS = new RegExp(`\\b(${Object.keys(GLOSSARY).join("|")})(s?)\\b`, "i");
/** A text whose words of the glossary, each the first time, can be asked what they mean. */
function glossed(text) {
  const parts = [], seen = new Set();
  let rest = text, found;
  while ((found = WORDS.exec(rest))) {
    const [word, stem] = found, key = stem.toLowerCase();
    parts.push(rest.slice(0, found.index), seen.has(key) ? word : asked(word, GLOSSARY[key]));
    seen.add(key);
    rest = rest.slice(found.index + word.length);
  }
  return [...parts, rest].filter((part) => part !== "");
}
function asked(word, meaning) {
  const note = make("span", { class: "note", role: "note" });
  const button = make("button", { type: "button", class: "term", "aria-expanded": "false", onclick: () => {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    note.textContent = open ? ` (${meaning.replaceAll("`", "")}) ` : "";
  } }, word);
  return make("span", {}, button, note);
}
