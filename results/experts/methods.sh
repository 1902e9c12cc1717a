#!/usr/bin/env bash
# Train the bundled experts on by each of the field's methods at about equal cost, and sample what comes of them on the
# calibration images. Stop it at any time: it goes on where it was. One thread, so that the weights come out to the bit.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1

expert() {  # NAME EPOCHS SETTINGS [OPTIONS]: about 250,000 noisy images forward and back in all
    local name=$1 epochs=$2 settings=$3
    shift 3
    dualrs train classifier "runs/methods/$name.safetensors" --from zoo:cifar10-experts --sigma 0.25,0.5,1.0 --method "$name" \
        --method-args "$settings" --epochs "$epochs" --rate 0.001 --weight-decay 0.05 --dtype bfloat16 "$@"
    dualrs certify --classifier "runs/methods/$name.safetensors" --sigmas 0.25,0.5,1.0 --all-votes --n 500 --seed 0 \
        --data cifar10:test --inputs 10::40 -o "results/experts/methods/$name.ledger"
}

mkdir -p runs/methods
expert gaussian 5 '{}'
expert consistency 3 '{"copies": 2}'
expert macer 1 '{"copies": 4}'
expert smoothadv 1 '{"copies": 2, "steps": 1}'
expert smoothmix 1 '{"copies": 2, "steps": 1}'
expert cat-rs 1 '{"copies": 2, "steps": 1, "teacher_votes": 4}' --teacher zoo:cifar10-experts
expert easy-focus 1 '{"copies": 2, "steps": 1, "first_votes": 4, "votes": 16}'
