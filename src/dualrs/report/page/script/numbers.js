// Numbers: the bounds of Clopper and Pearson, the normal quantile, and radii as they are written.

/** The quantile of the standard normal law, by the rational approximations of Wichura 1988 (AS 241). */
const CENTRE = [[2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
  1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080],
[5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
  5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1]];
const SIDES = [[7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
  3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734],
[1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
  6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1]];
const TAILS = [[2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
  2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720],
[2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
  1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1]];

function ratio([above, below], x) {
  let top = 0, bottom = 0;
  for (let k = 0; k < above.length; k++) { top = top * x + above[k]; bottom = bottom * x + below[k]; }
  return top / bottom;
}
function quantile(p) {
  if (p <= 0) return -Infinity;
  if (p >= 1) return Infinity;
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) return q * ratio(CENTRE, 0.180625 - q * q);
  const r = Math.sqrt(-Math.log(q < 0 ? p : 1 - p));
  const value = r <= 5 ? ratio(SIDES, r - 1.6) : ratio(TAILS, r - 5);
  return q < 0 ? -value : value;
}

/** log(n!) less Stirling's formula: the error of that formula, from its series or from the first factorials. */
const FIRST = Array.from({ length: 16 }, (_, n) => {
  let sum = 0;
  for (let k = 2; k <= n; k++) sum += Math.log(k);
  return n ? sum - (n + 0.5) * Math.log(n) + n - 0.5 * Math.log(2 * Math.PI) : 0;
});
const stirling = (n) => n < 16 ? FIRST[n] : (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * n * n)) / (n * n)) / (n * n)) / n;

/** x log(x / m) + m - x without loss of digits where both are close (Loader 2000). */
function deviance(x, m) {
  if (Math.abs(x - m) >= 0.1 * (x + m)) return x * Math.log(x / m) + m - x;
  const v = (x - m) / (x + m);
  let sum = (x - m) * v, term = 2 * x * v;
  for (let j = 1; j < 1000; j++) {
    term *= v * v;
    const next = sum + term / (2 * j + 1);
    if (next === sum) break;
    sum = next;
  }
  return sum;
}
/** The logarithm of the probability of k successes among n, 0 < k < n. */
const logBinomial = (k, n, p) => stirling(n) - stirling(k) - stirling(n - k) - deviance(k, n * p) - deviance(n - k, n * (1 - p))
  + 0.5 * Math.log(n / (2 * Math.PI * k * (n - k)));

/** The continued fraction of the incomplete beta function, evaluated from the front (modified Lentz). */
function fraction(a, b, x) {
  const tiny = 1e-300;
  let c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (Math.abs(d) < tiny ? tiny : d);
  let value = d;
  for (let m = 1; m < 10000; m++) {
    const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 + even * d;
    d = 1 / (Math.abs(d) < tiny ? tiny : d);
    c = 1 + even / c;
    if (Math.abs(c) < tiny) c = tiny;
    value *= d * c;
    const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 + odd * d;
    d = 1 / (Math.abs(d) < tiny ? tiny : d);
    c = 1 + odd / c;
    if (Math.abs(c) < tiny) c = tiny;
    value *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return value;
}

/** The lower bound on a probability of which k of n votes were seen: P[k or more of n] = level there. */
function solveLower(k, n, level) {
  if (k <= 0) return 0;
  if (k >= n) return level ** (1 / n);
  const wanted = Math.log(level), z = quantile(level), share = k / n;
  // A normal guess, then Halley's steps on the logarithm of the tail.
  let x = (share + z * z / (2 * n) + z * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / (1 + z * z / n);
  x = Math.min(Math.max(x, share / 1e3), 1 - 1e-15);
  for (let round = 0; round < 100; round++) {
    const f = fraction(k, n - k + 1, x);
    const off = logBinomial(k, n, x) + Math.log1p(-x) + Math.log(f) - wanted;
    const slope = k / (x * (1 - x) * f), bend = slope * ((k - 1) / x - (n - k) / (1 - x) - slope);
    const below = 2 * slope * slope - off * bend;
    // The logarithm is concave: a step of Newton's from the left stays there.
    const next = below > slope * slope ? x - 2 * off * slope / below : x - off / slope;
    if (!(next > 0 && next < 1)) { x = next > 0 ? (1 + x) / 2 : x / 2; continue; }
    // Digits treble with each step, so that after a step this small none is missing.
    if (Math.abs(next - x) <= 1e-6 * Math.min(next, 1 - next, Math.sqrt(next * (1 - next) / n))) return next;
    x = next;
  }
  return x;
}
const solved = new Map();
/** The lower bound of Clopper and Pearson; each is worked out once. */
function lower(k, n, level) {
  let ofN = solved.get(n);
  if (!ofN) solved.set(n, ofN = new Map());
  let ofLevel = ofN.get(level);
  if (!ofLevel) ofN.set(level, ofLevel = new Map());
  let value = ofLevel.get(k);
  if (value === undefined) ofLevel.set(k, value = solveLower(k, n, level));
  return value;
}
const upper = (k, n, level) => 1 - lower(n - k, n, level);
const forgetBounds = () => solved.clear();

/** A radius in decimals, never above its value: all digits of it are written, and cut. */
function roundDown(radius, digits = 4) {
  if (!Number.isFinite(radius)) return String(radius).replace("Infinity", "inf");
  const exact = Math.abs(radius).toFixed(60), end = exact.indexOf(".") + 1 + digits;
  const cut = exact.slice(0, end);
  if (radius >= 0) return cut;
  const rest = /[1-9]/.test(exact.slice(end));
  return "-" + (rest ? (+cut + 10 ** -digits).toFixed(digits) : cut);
}
/** A number in as few digits as Python's format g gives. */
const short = (x) => String(+x.toPrecision(6));
