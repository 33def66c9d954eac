"""Averages adapters that began at the same one: `python -m training.average A B --out C`.

Two adapters of one origin lie in one valley, and the middle is often better than both: what each learned
too eagerly is halved. The calibration must be fitted again afterwards.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file


def average(paths: Sequence[Path], shares: Sequence[float], out: Path) -> None:
    """Write the weighted mean of all numbers."""
    adapters = [load_file(str(path)) for path in paths]
    total = sum(shares)
    mean = {
        name: np.asarray(
            sum(s * a[name].astype(np.float32) for s, a in zip(shares, adapters, strict=True))
            / total,
            array.dtype,
        )
        for name, array in adapters[0].items()
    }
    with safe_open(str(paths[0]), "numpy") as file:
        notes = file.metadata() or {}
    said = " + ".join(f"{share / total:.2f}" for share in shares)
    save_file(mean, str(out), metadata=notes | {"average": said})


def main() -> None:
    """Average with equal shares, or with those given."""
    parser = argparse.ArgumentParser(description="Average adapters that began at the same one.")
    parser.add_argument("adapters", type=Path, nargs="+")
    parser.add_argument("--shares", type=float, nargs="+", help="one number per adapter")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    shares = options.shares or [1.0] * len(options.adapters)
    if len(shares) != len(options.adapters):
        parser.error("give one share per adapter")
    average(options.adapters, shares, options.out)


if __name__ == "__main__":
    main()
