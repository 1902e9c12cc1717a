#!/usr/bin/env bash
# Certify photographs with a thousand classes: the cascade and fixed sigmas from the same votes.
#     results/photographs/run.sh FOLDER [OPTIONS]
# FOLDER has a folder of photographs for each class, a thousand in the order of ImageNet's; or images.csv (id,label,...
# with labels from 0 on) beside images/ID.png. OPTIONS go to the certification: --inputs ::2, --dtype float32.
# By default two of every five photographs: of 200, in 40 minutes of two cores. Stop it at any
# time: it goes on where it was.
set -euo pipefail
folder=$(realpath "${1:?say where the photographs are: results/photographs/run.sh FOLDER}")
shift
cd "$(dirname "$0")/../.."
to=${TO:-results/photographs}
mkdir -p "$to" runs/photographs

# A folder for each class, empty ones too; links will do.
photographs=runs/photographs/photographs
rm -rf "$photographs"
if [ -f "$folder/images.csv" ]; then
    mkdir "$photographs"
    (cd "$photographs" && seq -f %03g 0 999 | xargs mkdir)
    tail -n +2 "$folder/images.csv" | while IFS=, read -r name label _; do
        ln -s "$folder/images/$name.png" "$photographs/$(printf %03d "$label")/"
    done
else
    ln -s "$folder" "$photographs"
fi

recipe=results/photographs/photographs.toml
for first in 0 1; do
    dualrs certify "$recipe" --inputs "$first::5" --all-votes -o "$to/all-votes.ledger" "$@"
done
