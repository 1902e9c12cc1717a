#!/usr/bin/env bash
# Networks without noise that state their radius: ACE, the dual predictor with such an expert, a cascade with such a last
# stage. All 500 images of the subset; INPUTS=:10 for a trial. Stop it at any time: it goes on where it was.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=results/baselines
classifier='zoo:cifar10-denoiser | zoo:cifar10-tuned'
common=(--data cifar10:subset --inputs "${INPUTS:-::}" --n "${N:-10000}" --seed 0 --all-votes)

dualrs certify --router $out/networks.py:margin_router --sigma-e 0 --classifier "$classifier" --sigmas 0.25,0.5,1.0 \
    "${common[@]}" -o "${OUT:-$out}/ace.ledger"
dualrs certify --router "zoo:cifar10-denoiser | $out/networks.py:core_router" --sigma-e 1.0 --core zoo:cifar10-lipschitz \
    --classifier "$classifier" --sigmas 0.5,1.0 "${common[@]}" -o "${OUT:-$out}/mixed.ledger"
dualrs certify --core zoo:cifar10-lipschitz --classifier 'zoo:cifar10-denoiser | zoo:cifar10-cascade' \
    --sigmas 0.25,0.5,1.0 "${common[@]}" -o "${OUT:-$out}/backed.ledger"
