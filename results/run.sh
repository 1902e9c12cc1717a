#!/usr/bin/env bash
# Sample and train all that is under results/, from the bundled networks. Stop it at any time: it goes on where it was.
# The ledgers here were drawn with the first noise of dualrs, to which no votes are added: move them away to sample afresh.
# Needs the training images (dualrs data cifar10) and, for the votes that ablations share, dualrs rounds cifar10-cpu.
set -euo pipefail
cd "$(dirname "$0")/.."

headline=(results/headline/tuned.toml results/headline/off-the-shelf.toml)
dualrs panel "${headline[@]}" -o results/headline --inputs ::2
dualrs panel "${headline[@]}" -o results/headline/seed-1 --inputs ::4 --seed 1

# These have the noise of today. The first is for tuning, on test images outside the subset.
dualrs certify results/cascade/cascade.toml --data cifar10:test --inputs 10::40 --n 2000 --all-votes -o results/cascade/calibration.ledger
dualrs panel results/cascade/subset/off-the-shelf.toml -o results/cascade/subset
for way in plain passing consistency; do
    python results/cascade/training.py "$way"
    maker=$([ "$way" = passing ] && echo "results/cascade/training.py:passing_network < " || true)
    dualrs certify --classifier "zoo:cifar10-denoiser | ${maker}runs/for-the-cascade/$way.safetensors" --sigmas 0.25,0.5,1.0 \
        --all-votes --n 500 --seed 0 --data cifar10:test --inputs 10::40 -o "results/cascade/training/$way.ledger"
done
dualrs certify results/cascade/cascade.toml --data cifar10:test --inputs 10::40 --n 500 --all-votes -o results/cascade/training/off-the-shelf.ledger

fewer=(-o results/rounds --inputs ::2 --n 2000)
dualrs panel results/headline/off-the-shelf.toml "${fewer[@]}" --reuse results/headline/off-the-shelf.ledger
dualrs panel results/rounds/tuned-first-router.toml results/headline/tuned.toml "${fewer[@]}" --reuse results/headline/tuned.ledger

bundles=()
for recipe in hard-labels no-consistency weak-gate lambda-10 sigmas-0.25-0.5 sigmas-0.25-1 sigmas-0.5-1 data-10-percent votes-8 small-router; do
    dualrs rounds "results/ablations/$recipe.toml"
    bundles+=("runs/$recipe/bundle")
done
dualrs panel results/headline/off-the-shelf.toml "${bundles[@]}" -o results/ablations --inputs :348:2 --n 2000 --seed 0 --reuse results/headline/off-the-shelf.ledger

for experts in weak strong; do dualrs rounds "results/experts/$experts.toml"; done
dualrs certify --model runs/strong/bundle -o results/experts/strong.ledger --all-votes --inputs ::2 --n 2000 --seed 0
dualrs certify --model runs/weak/bundle -o results/experts/weak.ledger --all-votes --inputs ::2 --n 2000 --seed 0 --reuse results/headline/off-the-shelf.ledger

# A pool of better experts; the network that this trains is the bundled one. It has the noise of today.
dualrs train classifier runs/consistent.safetensors --from zoo:cifar10-experts --sigma 0.25,0.5,1.0 --method consistency \
    --epochs 8 --rate 0.001 --weight-decay 0.05 --dtype bfloat16
for sigma in 0.25 0.5 1.0; do
    dualrs certify --classifier zoo:cifar10-consistent --sigma "$sigma" --adaptive --n 10000 --seed 0 --data cifar10:subset \
        -o "results/experts/pool/adaptive/consistent-$sigma.ledger"
done
results/experts/methods.sh
# What confidences are chosen by: `dualrs tune results/experts/pool/calibration.ledger --radii 0,0.25,0.5,0.75,1`.
dualrs certify --classifier zoo:cifar10-consistent-8bit --sigmas 0.25,0.5,1.0 --confidences 0.3,0.4,0.5,0.6,0.7 --all-votes \
    --n 2000 --seed 0 --data cifar10:test --inputs 10::40 -o results/experts/pool/calibration.ledger

for sigma in 0.25 0.5 1.0; do
    dualrs certify --core zoo:cifar10-classifier --classifier 'zoo:cifar10-denoiser | zoo:cifar10-classifier' --sigma "$sigma" \
        --thresholds 0.5,1.0,1.5 --data cifar10:subset -o "results/aces/sigma-$sigma.ledger" --inputs ::2 --n 2000 --seed 0
done
