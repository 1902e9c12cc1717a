#!/usr/bin/env bash
# Make the tables and figures under results/ from the ledgers there, and check them: a minute, without a network.
set -euo pipefail
cd "$(dirname "$0")"

table() {  # FOLDER LEDGERS... -- OPTIONS...: one comparison in three formats, each row made again from its votes
    local folder=$1 ledgers=()
    shift
    while [[ $1 != -- ]]; do ledgers+=("$folder/$1.ledger"); shift; done
    shift
    for format in md csv tex; do dualrs compare "${ledgers[@]}" "$@" -o "$folder/table.$format"; done
    dualrs verify "${ledgers[@]}" --table "$folder/table.csv"
}

methods=sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,nosplit,fusion
table headline tuned off-the-shelf -- --baseline tuned/multiscale
table headline/seed-1 tuned off-the-shelf -- --baseline tuned/multiscale
for model in tuned off-the-shelf; do
    dualrs figure accuracy "headline/$model.ledger" --methods "$methods" -o "headline/accuracy-$model.png"
done
for figure in best-sigma radius-sigma p-a; do dualrs figure "$figure" headline/tuned.ledger -o "headline/$figure.png"; done
for figure in regret slack; do
    dualrs figure "$figure" headline/tuned.ledger headline/off-the-shelf.ledger -o "headline/$figure.png"
done
dualrs figure penalty -o headline/penalty.png
