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

compare headline tuned/multiscale
compare headline/seed-1 tuned/multiscale
for model in tuned off-the-shelf; do
    dualrs compare "headline/$model.ledger" --methods sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade \
        --baseline cascade -o "headline/against-cascade-$model.md"
    dualrs figure accuracy "headline/$model.ledger" --methods sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade \
        -o "headline/accuracy-$model.png"
done
for figure in best-sigma radius-sigma p-a; do dualrs figure "$figure" headline/tuned.ledger -o "headline/$figure.png"; done
for figure in regret slack; do dualrs figure "$figure" headline/*.ledger -o "headline/$figure.png"; done
dualrs figure penalty -o headline/penalty.png

methods=sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade,cascade-0.6,0.3
compare cascade/subset cascade-0.6,0.3 --methods "$methods"
dualrs compare cascade/subset/off-the-shelf.ledger --methods "$methods" --baseline cascade -o cascade/subset/against-cascade.md
dualrs figure accuracy cascade/subset/off-the-shelf.ledger --methods "$methods" -o cascade/subset/accuracy.png
compare cascade/training off-the-shelf/cascade --methods sigma-0.25,sigma-0.5,sigma-1,multiscale,cascade,cascade-0.3
compare rounds off-the-shelf/paper --methods paper,fusion
dualrs figure accuracy --methods paper rounds/{off-the-shelf,tuned-first-router,tuned}.ledger -o rounds/accuracy.png

compare ablations off-the-shelf/paper --methods paper,fusion
losses=(ablations/{off-the-shelf,hard-labels,no-consistency,weak-gate,lambda-10}.ledger)
for figure in regret slack; do dualrs figure "$figure" "${losses[@]}" -o "ablations/$figure-losses.png"; done
dualrs figure accuracy --methods paper "${losses[@]}" -o ablations/accuracy-losses.png
dualrs figure accuracy --methods paper ablations/{off-the-shelf,sigmas-0.25-0.5,sigmas-0.25-1,sigmas-0.5-1}.ledger -o ablations/accuracy-sigmas.png
dualrs figure accuracy --methods paper ablations/{off-the-shelf,data-10-percent,votes-8,small-router}.ledger -o ablations/accuracy-costs.png

compare experts weak/paper --methods sigma-0.25,sigma-1,paper,fusion
dualrs figure accuracy --methods sigma-0.25,sigma-1,paper experts/*.ledger -o experts/accuracy.png
dualrs compare experts/methods/*.ledger --methods sigma-0.25,sigma-0.5,sigma-1,cascade --baseline gaussian/cascade -o experts/methods/differences.md

baselines/tables.sh
dualrs figure accuracy cascade/subset/off-the-shelf.ledger attacks/{cascade,sigma-0.5}.attack --methods cascade,sigma-0.5 \
    --inputs ::5 -o attacks/accuracy.png

compare aces sigma-0.25/aces-0.5
dualrs figure accuracy rounds/off-the-shelf.ledger aces/*.ledger -o aces/accuracy.png \
    --methods off-the-shelf/fusion,sigma-0.25/aces-0.5,sigma-0.25/aces-1.5,sigma-0.5/aces-0.5,sigma-0.5/aces-1.5,sigma-1.0/aces-0.5,sigma-1.0/aces-1.5
