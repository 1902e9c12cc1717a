#!/usr/bin/env bash
# The paper's rounds on the consistent experts, for two seeds of training: assign sigmas by the first router, fine-tune,
# label again, train a second router. Stop it at any time: it goes on where it was. One thread, so that the weights come
# out to the bit; the routers in networks/ are those of seed 0, in eight bits. An hour of a busy core for each seed.
#     results/thousand/rounds.sh 0    # or 1
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1

seed=$1
case $seed in
    0) first=runs/routers/paper networks=results/thousand/networks ;;  # results/routers/run.sh trains the first router
    1) first=runs/ablations/seed-1 networks=runs/rounds/seed-1/networks ;;  # results/ablations/run.sh trains it
esac
runs=runs/rounds/seed-$seed
mkdir -p "$runs" "$networks"
eight_bits() { if [ ! -f "$networks/$2.safetensors" ]; then dualrs quantise "$1.safetensors" "$networks/$2.safetensors"; fi; }

eight_bits "$first" first-router
dualrs assign -o "$runs/assigned.ledger" --router "$networks/first-router.safetensors" --sigmas 0.25,0.5,1.0 --sigma-e 1.0 \
    --data cifar10:train --inputs ::2 --n 20 --seed 0
dualrs train classifier "$runs/tuned.safetensors" --from zoo:cifar10-consistent --sigma-from "$runs/assigned.ledger" \
    --method consistency --epochs 4 --rate 0.0005 --weight-decay 0.05 --dtype bfloat16 --seed "$seed"
eight_bits "$runs/tuned" tuned
dualrs label -o "$runs/labels.ledger" --classifier "$networks/tuned.safetensors" --sigmas 0.25,0.5,1.0 --n 64 --inputs ::5 --seed 0
dualrs train router "$runs/second.safetensors" --labels "$runs/labels.ledger" \
    --network-args '{"widths": [24, 48, 96], "blocks": [1, 1, 1]}' --epochs 20 --rate 0.003 --halve-every 0 --dtype bfloat16 --seed "$seed"
eight_bits "$runs/second" second-router
