#!/usr/bin/env bash
# Certify the bundled subset by the baselines of the paper's Table 1, all at n = 1,000, and tabulate them.
# Stop it at any time: it goes on where it was. Needs the training images (dualrs data cifar10).
# What follows --, if anything, goes to each certification: TO=runs/baselines results/baselines/run.sh -- --inputs 0:10
set -euo pipefail
cd "$(dirname "$0")/../.."
to=${TO:-results/baselines}
[ "${1:-}" = -- ] && shift
mkdir -p "$to"
votes=results/cascade/subset/off-the-shelf.ledger  # of the same classifier and router on the same images, n = 10,000

# A sigma for each input: nothing of these is there already.
for sigma in 0.25 0.5 1.0; do
    dualrs certify results/baselines/neighbours.toml --n 1000 --sigma "$sigma" -o "$to/neighbours-$sigma.ledger" "$@"
done
dualrs certify results/baselines/ascent.toml --n 1000 -o "$to/ascent.ledger" "$@"

# Constant sigmas, the cascade and the dual predictor; an expert without noise: all votes are taken over.
dualrs certify results/cascade/subset/off-the-shelf.toml --n 1000 --all-votes --reuse "$votes" -o "$to/constant.ledger" "$@"
dualrs certify results/baselines/mixed.toml --all-votes --reuse "$votes" -o "$to/mixed.ledger" "$@"
# Without the router, whose copies the votes at sigma 1 were on, those are drawn; ACE takes over what the cascade has.
dualrs certify results/baselines/backed.toml --all-votes --reuse "$votes" -o "$to/backed.ledger" "$@"
dualrs certify results/baselines/ace.toml --all-votes --reuse "$to/backed.ledger" -o "$to/ace.ledger" "$@"

# Networks with randomness of their own, at one sigma, and the plain network with as many votes.
dualrs certify results/cascade/subset/off-the-shelf.toml --n 300 --all-votes --reuse "$votes" -o "$to/plain.ledger" "$@"
for random in diffsmooth densepure; do
    dualrs certify "results/baselines/$random.toml" -o "$to/$random.ledger" "$@"
done

results/baselines/tables.sh "$to"
