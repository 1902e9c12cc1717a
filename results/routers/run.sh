#!/usr/bin/env bash
# Train routers for the consistent experts, and sample what comes of them on the calibration images. Stop it at any time:
# it goes on where it was. One thread, so that the weights come out to the bit; the networks in networks/ are these.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1

here=results/routers
mkdir -p runs/routers
dualrs label -o runs/routers/labels.ledger --classifier zoo:cifar10-consistent-8bit --sigmas 0.25,0.5,1.0 --n 64 --inputs ::2 --seed 0

router() {  # NAME OPTIONS
    local name=$1
    shift
    dualrs train router "runs/routers/$name.safetensors" --labels runs/routers/labels.ledger \
        --network-args '{"widths": [24, 48, 96], "blocks": [1, 1, 1]}' --epochs 10 --rate 0.003 --halve-every 0 --dtype bfloat16 "$@"
}
router paper  # in eight bits: results/thousand/networks/first-router.safetensors
for sigma in 1.0 0.5; do
    router "cautious-$sigma" --loss $here/losses.py:cautious --no-balanced --sigma-e "$sigma"
    router "regret-$sigma" --loss $here/losses.py:regret --no-balanced --sigma-e "$sigma"
    if [ ! -f "$here/networks/regret-$sigma.safetensors" ]; then dualrs quantise "runs/routers/regret-$sigma.safetensors" "$here/networks/regret-$sigma.safetensors"; fi
done

dualrs panel $here/regret-1.0.toml -o $here --inputs 10::40 --reuse results/experts/pool/calibration.ledger
dualrs certify --classifier $here/gate.py:gated --sigmas 0.25,0.5,1.0 --confidences 0.15 --rule cascade-0.15,0.15 --all-votes --n 2000 \
    --seed 0 --data cifar10:test --inputs 10::40 -o $here/gated.ledger
