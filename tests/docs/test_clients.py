"""The page of clients says what the tests prove."""

import importlib
import sys
from pathlib import Path

from documents import ROOT


def test_the_matrix_is_up_to_date():
    sys.path.insert(0, str(ROOT / "tests" / "server"))
    try:
        matrix = importlib.import_module("matrix")
        for name in ("test_api_clients", "test_api_litellm"):
            importlib.import_module(name)
        assert len(matrix.ROWS) >= 10
        page = Path(matrix.PAGE).read_text(encoding="utf-8")
        assert page == matrix.page(), "run: make client-matrix"
        for row in matrix.ROWS:
            assert row.test.startswith("test_")
    finally:
        sys.path.pop(0)
