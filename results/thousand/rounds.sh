#!/usr/bin/env bash
# The paper's rounds on the consistent experts: assign sigmas by the first router (results/routers/run.sh trains it),
# fine-tune, label again, train a second router. Stop it at any time: it goes on where it was. One thread, so that the
# weights come out to the bit; the routers in networks/ are these, in eight bits. An hour of a busy core.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1

networks=results/thousand/networks
eight_bits() { if [ ! -f "$networks/$2.safetensors" ]; then dualrs quantise "runs/routers/$1.safetensors" "$networks/$2.safetensors"; fi; }

eight_bits paper first-router
dualrs assign -o runs/routers/assigned.ledger --router $networks/first-router.safetensors --sigmas 0.25,0.5,1.0 --sigma-e 1.0 \
    --data cifar10:train --inputs ::2 --n 20 --seed 0
dualrs train classifier runs/routers/tuned.safetensors --from zoo:cifar10-consistent --sigma-from runs/routers/assigned.ledger \
    --method consistency --epochs 4 --rate 0.0005 --weight-decay 0.05 --dtype bfloat16
eight_bits tuned tuned
dualrs label -o runs/routers/labels-tuned.ledger --classifier $networks/tuned.safetensors --sigmas 0.25,0.5,1.0 --n 64 --inputs ::5 --seed 0
dualrs train router runs/routers/second.safetensors --labels runs/routers/labels-tuned.ledger \
    --network-args '{"widths": [24, 48, 96], "blocks": [1, 1, 1]}' --epochs 20 --rate 0.003 --halve-every 0 --dtype bfloat16
eight_bits second second-router
