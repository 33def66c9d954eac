"""Fits the adapter's two calibration numbers on dev: `python -m training.calibrate --adapter A`.

Rewrites the file in place; the order of topics does not change, only how sure the model says it is.
"""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy.optimize import minimize

from tailrace.models.port import FloatArray
from training.data import Topics
from training.evaluate import calibration_error, checks
from training.score import Int8Scorer


def platt(logits: FloatArray, right: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and shift that make the logits' probabilities most likely."""
    z = logits.ravel().astype(np.float64)
    sign = np.where(right.ravel(), 1.0, -1.0)

    def surprise(found: npt.NDArray[np.float64]) -> float:
        return float(np.logaddexp(0, -sign * (found[0] * z + found[1])).mean())

    slope, shift = minimize(surprise, [1.0, 0.0], method="Nelder-Mead").x
    return float(slope), float(shift)


def main() -> None:
    """Fit, rewrite, print both errors."""
    parser = argparse.ArgumentParser(description="Calibrate an adapter on the dev reviews.")
    parser.add_argument("--adapter", type=Path, required=True)
    options = parser.parse_args()
    dev = checks(Topics())[0]
    scorer = Int8Scorer(options.adapter)
    logits = scorer.logits([text.text for text in dev.texts], dev.wordings)
    scorer.close()
    slope, shift = platt(logits, dev.right)
    arrays = load_file(str(options.adapter))
    with safe_open(str(options.adapter), "numpy") as file:
        notes = file.metadata()
    before = arrays["cal"]
    arrays["cal"] = np.array([slope * before[0], slope * before[1] + shift], np.float32)
    save_file(arrays, str(options.adapter), metadata=notes)
    after = np.asarray(slope * logits + shift, np.float32)
    print(f"calibration {before.tolist()} -> {arrays['cal'].tolist()}")
    print(f"error on dev {calibration_error(logits, dev.right):.4f} ->", end=" ")
    print(f"{calibration_error(after, dev.right):.4f}")


if __name__ == "__main__":
    main()
