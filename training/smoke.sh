#!/bin/sh
# Does training still work? An environment of its own, a few steps on a few texts, and the adapter that
# comes out is read by the product. Run from the repository's root: make train-smoke
set -eu
python=${PYTHON:-python3}
env=training/.venv
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

test -x "$env/bin/python" || "$python" -m venv "$env"
# TORCH_INDEX may name an index with wheels that carry no CUDA.
"$env/bin/python" -m pip install -q --disable-pip-version-check \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -e . -r training/requirements.txt
"$env/bin/python" -m training.train --out "$out/adapter.safetensors" --steps 4 --limit 24
"$env/bin/python" -m training.smoke --adapter "$out/adapter.safetensors"
