// Intervals: how far a difference in certified accuracy is a matter of which inputs were drawn.

/** The law of (gained - lost) over n inputs drawn again from n, of which so many were lost and gained: weights from -n to n.

Coefficients of (lost + rest z + gained z^2)^n follow from the two before; they are scaled on the way, as the first of
them are too small for a double. */
function resampled(lost, gained, n) {
  const weights = new Float64Array(2 * n + 1), a = lost / n, b = 1 - (lost + gained) / n, c = gained / n;
  weights[0] = 1;
  for (let k = 1; k <= 2 * n; k++) {
    weights[k] = ((n - k + 1) * b * weights[k - 1] + (k > 1 ? (2 * n - k + 2) * c * weights[k - 2] : 0)) / (k * a);
    if (weights[k] > 1e250) for (let j = Math.max(0, k - 2 * n); j <= k; j++) weights[j] *= 1e-250;
    if (!(weights[k] > 0)) break; // beyond the last value that can be told from 0
  }
  return weights;
}
const ENDS = [0.025, 0.975];
/** The ends of a 95% percentile interval of the paired bootstrap, of all resamples and not of some, in shares.

How far two methods reach is given for each input, and the difference is that of those that reach a radius. */
function pairedInterval(ours, theirs, radius) {
  let lost = 0, gained = 0;
  for (let i = 0; i < ours.length; i++) {
    if (ours[i] >= radius) { if (theirs[i] < radius) gained++; } else if (theirs[i] >= radius) lost++;
  }
  return intervalOf(lost, gained, ours.length);
}
const intervals = new Map();
function intervalOf(lost, gained, n) {
  if (gained > lost) return intervalOf(gained, lost, n).map((end) => -end).reverse();
  if (!lost) return [0, 0];
  const key = `${lost} ${gained} ${n}`;
  if (!intervals.has(key)) {
    const weights = resampled(lost, gained, n), total = weights.reduce((sum, w) => sum + w, 0);
    const ends = ENDS.map((wanted) => {
      let sum = 0, k = 0;
      for (; k < weights.length; k++) { sum += weights[k]; if (sum >= wanted * total) break; }
      return (k - n) / n;
    });
    intervals.set(key, ends);
  }
  return [...intervals.get(key)];
}
