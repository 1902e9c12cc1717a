#!/usr/bin/env bash
# Networks without noise that state their radius: ACE, the dual predictor with such an expert, a cascade with such a last
# stage, each on the 500 images of the subset. Stop it at any time: it goes on where it was. Options are passed on to
# dualrs certify: --inputs :10 for a trial.
set -euo pipefail
cd "$(dirname "$0")/../.."

for kind in ace mixed backed; do
    dualrs certify "results/baselines/$kind.toml" --all-votes "$@" -o "results/baselines/$kind.ledger"
done
