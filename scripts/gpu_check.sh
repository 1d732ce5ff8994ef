#!/bin/sh
# What only a GPU can tell, in under 8 minutes on one: scripts/gpu_check.sh > gpu.txt
#
# 1. the tests marked `gpu`
# 2. model=base and model=big on generated pairs in bf16-mixed, with and without torch.compile, beside
#    a MarianMT of transformers of equal size: target tokens/s, share of the matrix ceiling that is
#    measured in the same run, peak memory
#
#   --smoke         everything at a tiny size on the CPU, to try this script
#   PYTHON=path     default: .venv/bin/python
#   COMPILED=k=v    what compiles zhen's step; default: compile=true; empty: nothing does
#
# Needs `.venv/bin/pip install -e '.[bench]'`. Ends with 1 if a test failed.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
compiled=${COMPILED-compile=true}
case ${1:-} in
--smoke)
    export ZHEN_GPU_TESTS_ON=cpu
    models=tiny
    sizes="--device cpu --generated 200 --vocab-size 400 --tokens 512 --updates 2 --warmup 1"
    ;;
"")
    "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || {
        echo "error: torch finds no GPU here; scripts/gpu_check.sh --smoke tries the script" >&2
        exit 1
    }
    models="base big"
    sizes="--device cuda --generated 60000 --vocab-size 8000 --tokens 32768 --updates 100 --warmup 30"
    ;;
*)
    echo "error: $1: scripts/gpu_check.sh takes --smoke or nothing" >&2
    exit 1
    ;;
esac

failed=0
echo "## Tests"
"$python" -m pytest -m gpu -q -p no:cacheprovider tests/test_gpu.py || failed=1

for model in $models; do
    echo
    echo "## model=$model"
    # Sizes are several words.
    # shellcheck disable=SC2086
    "$python" scripts/bench.py train $sizes --model "$model" --precision bf16-mixed --rounds 1 \
        ${compiled:+--compiled "$compiled"} --only zhen --only "zhen compiled" --only "MarianMT by length" || failed=1
done
exit $failed
