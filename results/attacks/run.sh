#!/usr/bin/env bash
# Attack the certificates of the bundled subset, method by method: first all of them inside their radii, then beyond the
# radius for every fifth input. Stop it at any time: it goes on where it was.
# What it finds is in runs/attacks; results/attacks has the same without the changed images, which are most of its size.
# Give --workers 4, or other options of `dualrs attack`, to pass them on.
set -euo pipefail
cd "$(dirname "$0")/../.."

mkdir -p runs/attacks
for part in "--no-bracket" "--inputs ::5"; do
    for method in cascade sigma-0.5 fusion paper sigma-0.25 sigma-1; do
        if [ -f "results/attacks/$method.attack" ]; then cp -n "results/attacks/$method.attack" runs/attacks/; fi
        # shellcheck disable=SC2086  # two words
        dualrs attack results/cascade/subset/off-the-shelf.ledger --recipe results/cascade/subset/off-the-shelf.toml \
            --method "$method" -o "runs/attacks/$method.attack" $part "$@"
        sed 's/"change":{[^}]*}/"change":null/' "runs/attacks/$method.attack" > "results/attacks/$method.attack"
    done
done
