"""Whether covers can be read on this machine; where not, their tests are skipped, but never in CI."""

import importlib.util
import os
import shutil

import pytest


def need_covers() -> None:
    """Skip the module that calls this where the extra `covers` or tesseract is missing."""
    there = importlib.util.find_spec("rapidocr") and shutil.which("tesseract")
    if not there and "TAILRACE_CI" not in os.environ:
        pytest.skip("nothing reads covers here; `make covers` says how", allow_module_level=True)
