#!/usr/bin/env bash
# Certify the bundled subset by the input-dependent baselines of the paper, and put them into one table.
# Stop it at any time: it goes on where it was. Needs the training images (dualrs data cifar10).
# What follows --, if anything, goes to each certification: run.sh -- --inputs 0:10
set -euo pipefail
cd "$(dirname "$0")/../.."
to=${TO:-results/baselines}
[ "${1:-}" = -- ] && shift
mkdir -p "$to"

for sigma in 0.25 0.5 1.0; do
    dualrs certify results/baselines/neighbours.toml --sigma "$sigma" -o "$to/neighbours-$sigma.ledger" "$@"
done
dualrs certify results/baselines/ascent.toml -o "$to/ascent.ledger" "$@"
dualrs memory "$to/ascent.ledger" -o "$to/ascent-remembered.tsv"

# Balls of one sigma are chosen from votes that are here already: those of the cascade, at three sigmas.
dualrs memory results/cascade/subset/off-the-shelf.ledger --by sigma -o "$to/balls.tsv"

# On some of the inputs alone the last cannot stand beside the others.
tables=("$to"/neighbours-*.ledger "$to/ascent.ledger" "$to/ascent-remembered.tsv")
[ $# -gt 0 ] || tables+=("$to/balls.tsv")
dualrs compare "${tables[@]}" -o "$to/table.csv"
