"""Checks an adapter fresh out of training: it has the shipped one's form and the product can run it."""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from training.score import Int8Scorer

SHIPPED = Path("src/tailrace/models/data/adapter.safetensors")


def main() -> None:
    """Fail with a sentence that says what is wrong."""
    parser = argparse.ArgumentParser(description="Check that an adapter can be used.")
    parser.add_argument("--adapter", type=Path, required=True)
    options = parser.parse_args()
    ours, shipped = load_file(str(options.adapter)), load_file(str(SHIPPED))
    assert ours.keys() == shipped.keys(), ours.keys() ^ shipped.keys()
    for name, array in ours.items():
        assert array.shape == shipped[name].shape, name
        assert array.dtype == shipped[name].dtype, name
        assert np.isfinite(array).all(), name
    moved = [name for name, array in ours.items() if name.endswith(".B") and array.any()]
    assert moved, "training changed nothing"
    scorer = Int8Scorer(options.adapter)
    logits = scorer.logits(["국물이 진하고 사장님이 친절해요"], ["음식의 맛", "parking"])
    scorer.close()
    assert np.isfinite(logits).all(), logits
    print(f"the product reads it: {len(ours)} arrays, logits {logits.round(2).tolist()}")


if __name__ == "__main__":
    main()
