#!/usr/bin/env bash
# Make the tables and figures under results/ from the ledgers there, and check them: some minutes, without a network.
set -euo pipefail
cd "$(dirname "$0")"

compare() {  # FOLDER BASELINE OPTIONS...: all ledgers of a folder side by side, and their differences from a baseline
    local folder=$1 baseline=$2
    shift 2
    for format in md csv tex; do dualrs compare "$folder"/*.ledger "$@" -o "$folder/table.$format"; done
    dualrs compare "$folder"/*.ledger "$@" --baseline "$baseline" -o "$folder/differences.md"
    dualrs verify "$folder"/*.ledger --table "$folder/table.csv"
}

methods=sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade,cascade-0.5,cascade-0.4,cascade-0.3
for format in md csv; do dualrs compare thousand/first.ledger --methods "$methods" -o "thousand/table.$format"; done
for baseline in cascade-0.5 cascade; do
    dualrs compare thousand/first.ledger --methods "$methods" --baseline "$baseline" -o "thousand/against-$baseline.md"
done
rounds=$(mktemp -d)
tar -xJf thousand/rounds/ledgers.tar.xz -C "$rounds"
methods=sigma-0.25,sigma-0.5,sigma-1,paper,fusion,cascade
dualrs compare thousand/first.ledger "$rounds/tuned.ledger" --methods "$methods" \
    --baseline first/paper -o thousand/rounds/differences.md
dualrs compare "$rounds"/{first,tuned}-seed-1.ledger --methods "$methods" --baseline first-seed-1/paper -o thousand/rounds/differences-seed-1.md
dualrs compare thousand/ten-thousand/ten-thousand.ledger --methods sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade,cascade-0.5 \
    --baseline cascade -o thousand/ten-thousand/against-cascade.md
dualrs verify thousand/first.ledger thousand/ten-thousand/ten-thousand.ledger "$rounds"/*.ledger thousand/seed-1/first.ledger
dualrs figure accuracy thousand/first.ledger --methods sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade,cascade-0.5 -o thousand/accuracy.png
for figure in best-sigma radius-sigma p-a regret slack; do dualrs figure "$figure" thousand/first.ledger -o "thousand/$figure.png"; done
dualrs figure penalty -o thousand/penalty.png

methods=sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade,cascade-0.6,0.3
compare cascade/subset cascade-0.6,0.3 --methods "$methods"
dualrs compare cascade/subset/off-the-shelf.ledger --methods "$methods" --baseline cascade -o cascade/subset/against-cascade.md
dualrs figure accuracy cascade/subset/off-the-shelf.ledger --methods "$methods" -o cascade/subset/accuracy.png
compare cascade/training off-the-shelf/cascade --methods sigma-0.25,sigma-0.5,sigma-1,multiscale,cascade,cascade-0.3

ablations=$(mktemp -d)
tar -xJf ablations/ledgers.tar.xz -C "$ablations"
dualrs verify "$ablations"/ledgers/*.ledger
losses=("$ablations"/ledgers/{hard-labels,no-consistency,lambda-10,first,weak-gate}.ledger)
for figure in regret slack; do dualrs figure "$figure" "${losses[@]}" -o "ablations/$figure-losses.png"; done
dualrs figure accuracy --methods paper "$ablations"/ledgers/{first,sigmas-0.25-0.5,sigmas-0.25-1.0,sigmas-0.5-1.0}.ledger -o ablations/accuracy-sigmas.png

compare experts weak/fusion --methods sigma-0.25,sigma-0.5,sigma-1,paper,fusion,cascade,cascade-0.5,cascade-0.6,0.3
dualrs figure accuracy --methods fusion,cascade,cascade-0.5 experts/*.ledger -o experts/accuracy.png
dualrs compare experts/pool/calibration.ledger routers/*.ledger --methods calibration/sigma-0.5,calibration/cascade-0.5,regret-1.0/paper,regret-1.0/fusion,gated/cascade-0.15,0.15 \
    --baseline calibration/cascade-0.5 -o routers/differences.md
dualrs compare experts/methods/*.ledger --methods sigma-0.25,sigma-0.5,sigma-1,cascade --baseline gaussian/cascade -o experts/methods/differences.md

baselines/tables.sh
dualrs figure accuracy cascade/subset/off-the-shelf.ledger attacks/{cascade,sigma-0.5}.attack --methods cascade,sigma-0.5 \
    --inputs ::5 -o attacks/accuracy.png

compare aces sigma-0.25/aces-0.5
dualrs figure accuracy aces/*.ledger -o aces/accuracy.png \
    --methods sigma-0.25/aces-1,sigma-0.25/aces-2,sigma-0.5/aces-1,sigma-0.5/aces-2,sigma-1.0/aces-1,sigma-1.0/aces-2
