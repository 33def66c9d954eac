"""What is heavy is loaded by who needs it: a server does not load what measures, a verb no other verb."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["tailrace.models.session_child", "tailrace.apps.api.app"])
def test_running_a_model_loads_nothing_that_writes_models(module: str) -> None:
    assert loaded_with(module, "onnx", "google.protobuf") == "[]"


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("tailrace.cli.main", ["fastapi", "numpy", "onnxruntime", "uvloop"]),
        ("tailrace.cli.api", ["tailrace.latency", "tailrace.simulate", "tailrace.apps.books"]),
        ("tailrace.cli.probe", ["fastapi", "onnxruntime", "tokenizers"]),
    ],
)
def test_a_verb_loads_what_it_needs_and_the_command_line_itself_nothing(
    module: str, heavy: list[str]
) -> None:
    assert loaded_with(module, *heavy) == "[]"


def loaded_with(module: str, *names: str) -> str:
    """Which of these modules are loaded once `module` is."""
    script = f"import sys, {module}; print([m for m in {names} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return found.stdout.strip()
