#!/usr/bin/env bash
# Sample and train all that is under results/, from the bundled networks. Stop it at any time: it goes on where it was.
# Needs the training images (dualrs data cifar10).
set -euo pipefail
cd "$(dirname "$0")/.."

# The first is for tuning, on test images outside the subset.
dualrs certify results/cascade/cascade.toml --data cifar10:test --inputs 10::40 --n 2000 --all-votes -o results/cascade/calibration.ledger
dualrs panel results/cascade/subset/off-the-shelf.toml -o results/cascade/subset
for way in plain passing consistency; do
    python results/cascade/training.py "$way"
    maker=$([ "$way" = passing ] && echo "results/cascade/training.py:passing_network < " || true)
    dualrs certify --classifier "zoo:cifar10-denoiser | ${maker}runs/for-the-cascade/$way.safetensors" --sigmas 0.25,0.5,1.0 \
        --all-votes --n 500 --seed 0 --data cifar10:test --inputs 10::40 -o "results/cascade/training/$way.ledger"
done
dualrs certify results/cascade/cascade.toml --data cifar10:test --inputs 10::40 --n 500 --all-votes -o results/cascade/training/off-the-shelf.ledger

# A pool of better experts; the network that this trains is the bundled one.
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

# A router for them, and the paper's rounds; the networks in results/routers/networks and results/thousand/networks.
results/routers/run.sh
results/thousand/rounds.sh 0
dualrs panel results/experts/weak.toml -o results/experts --reuse results/cascade/subset/off-the-shelf.ledger
dualrs panel results/experts/strong.toml -o results/experts
dualrs panel results/thousand/first.toml -o results/thousand --inputs 5::10
dualrs panel results/thousand/ten-thousand.toml -o results/thousand/ten-thousand --inputs 5::30
results/ablations/run.sh
results/thousand/rounds.sh 1
dualrs panel results/thousand/tuned.toml -o runs/rounds/ledgers --inputs 5::10
dualrs panel results/thousand/tuned-seed-1.toml -o runs/rounds/ledgers --inputs 5::20
dualrs panel results/thousand/first-seed-1.toml -o runs/rounds/ledgers --inputs 5::20 --reuse results/thousand/first.ledger
tar --sort=name --owner=0 --group=0 --mtime=@0 -C runs/rounds/ledgers -cf - {first-seed-1,tuned,tuned-seed-1}.ledger | xz --lzma2=preset=9e,lc=4,pb=0 > results/thousand/rounds/ledgers.tar.xz
dualrs panel results/thousand/first.toml -o results/thousand/seed-1 --inputs 5::40 --seed 1

for sigma in 0.25 0.5 1.0; do
    dualrs certify --core zoo:cifar10-classifier --classifier zoo:cifar10-consistent-8bit --sigma "$sigma" --thresholds 0.5,1.0,1.5,2.0 \
        --data cifar10:test --inputs 5::20 --n 2000 --seed 0 -o "results/aces/sigma-$sigma.ledger"
done
