"""What writes graphs is loaded by who writes one: not by a server, not by a process that runs a model."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["tailrace.models.session_child", "tailrace.apps.api.app"])
def test_running_a_model_loads_nothing_that_writes_models(module: str) -> None:
    script = (
        f"import sys, {module}; print([m for m in ('onnx', 'google.protobuf') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"
