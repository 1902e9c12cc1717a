#!/usr/bin/env bash
# Make the tables and the figure of the baselines from their ledgers, and check them: a minute, without a network.
# A folder may be given that has the ledgers, results/baselines by default.
set -euo pipefail
cd "$(dirname "$0")/../.."
to=${1:-results/baselines}

# With a memory: of the classes, after the ascent, and of the sigmas, from the votes at constant ones.
dualrs memory "$to/ascent.ledger" -o "$to/ascent-remembered.tsv"
dualrs memory "$to/constant.ledger" --by sigma -o "$to/balls.tsv"

files=("$to"/{constant,neighbours-0.25,neighbours-0.5,neighbours-1.0,ascent,ace,mixed,backed}.ledger "$to"/{ascent-remembered,balls}.tsv)
methods=constant/sigma-0.25,constant/sigma-0.5,constant/sigma-1,constant/multiscale,constant/paper,constant/fusion,constant/cascade
methods+=,neighbours-0.25/sukenik,neighbours-0.5/sukenik,neighbours-1.0/sukenik,ascent/as-if-constant
methods+=,ace/ace,ace/fusion,mixed/fusion,mixed/stated,backed/cascade
for format in md csv; do dualrs compare "${files[@]}" --methods "$methods" -o "$to/table.$format"; done
dualrs compare "${files[@]}" --methods "$methods" --baseline constant/cascade -o "$to/differences.md"
dualrs verify "${files[@]}" --table "$to/table.csv"
dualrs figure accuracy "${files[@]}" -o "$to/accuracy.png" \
    --methods constant/sigma-0.5,constant/cascade,neighbours-0.5/sukenik,ascent/as-if-constant,ace/ace,mixed/fusion,backed/cascade

random=("$to"/{plain,diffsmooth,densepure}.ledger)
dualrs compare "${random[@]}" --methods plain/sigma-0.5,diffsmooth/sigma-0.5,densepure/sigma-0.5 --baseline plain/sigma-0.5 -o "$to/random.md"
