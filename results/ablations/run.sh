#!/usr/bin/env bash
# Train a router for each ablation, put it into eight bits, and sample what comes of all of them in one pass. Stop it at
# any time: it goes on where it was. One thread, so that the weights come out to the bit. An hour and a half on one core.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1

here=results/ablations
mkdir -p runs/ablations
labels=runs/routers/labels.ledger  # half of the training images, 64 votes a sigma: results/routers/run.sh makes it
label() {  # NAME OPTIONS
    local name=$1
    shift
    dualrs label -o "runs/ablations/labels-$name.ledger" --classifier zoo:cifar10-consistent-8bit --seed 0 "$@"
}
router() {  # NAME LABELS OPTIONS: what results/thousand/networks/first-router.safetensors was trained with, but for the options
    local name=$1 labels=$2
    shift 2
    if [ -f "runs/ablations/networks/$name.safetensors" ]; then return; fi
    dualrs train router "runs/ablations/$name.safetensors" --labels "$labels" \
        --network-args '{"widths": [24, 48, 96], "blocks": [1, 1, 1]}' --epochs 10 --rate 0.003 --halve-every 0 --dtype bfloat16 "$@"
    mkdir -p runs/ablations/networks
    dualrs quantise "runs/ablations/$name.safetensors" "runs/ablations/networks/$name.safetensors"
}

router seed-1 $labels --seed 1
router hard-labels $labels --hard --consistency-weight 0 --entropy-weight 0
router no-consistency $labels --consistency-weight 0 --entropy-weight 0
router lambda-10 $labels --consistency-weight 10
router lambda-80 $labels --consistency-weight 80
router weak-gate $labels --gate weak
router unbalanced $labels --no-balanced
router small $labels --network-args '{"widths": [12, 24, 48], "blocks": [1, 1, 1]}'
for sigmas in 0.25,0.5 0.25,1.0 0.5,1.0; do
    label "$sigmas" --sigmas "$sigmas" --n 64 --inputs ::2 --reuse $labels
    router "sigmas-${sigmas/,/-}" "runs/ablations/labels-$sigmas.ledger" --sigma-e "${sigmas#*,}"  # the largest, as in the paper
done
label tenth --sigmas 0.25,0.5,1.0 --n 64 --inputs ::20 --reuse $labels
router tenth-of-data runs/ablations/labels-tenth.ledger --epochs 100
label 8 --sigmas 0.25,0.5,1.0 --n 8 --alpha 0.05 --inputs ::2
router votes-8 runs/ablations/labels-8.ledger
router large $labels --network-args '{"widths": [36, 72, 144], "blocks": [1, 1, 1]}'

dualrs panel $here/*.toml -o runs/ablations/ledgers --inputs 5::20
# One archive, as the ledgers have the classifier's votes in common: a sixth of their size.
cd runs/ablations && tar --sort=name --owner=0 --group=0 --mtime=@0 -cf - ledgers/*.ledger networks/*.json | xz -9e > "../../$here/ledgers.tar.xz"
