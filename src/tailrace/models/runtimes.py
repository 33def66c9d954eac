"""The runtimes by the names that settings give them, and where a session runs."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tailrace.models.onnx_session import OnnxSession
from tailrace.models.openvino_session import OpenvinoSession
from tailrace.models.session import Session
from tailrace.models.session_processes import SessionProcesses

Runtime = Literal["onnxruntime", "openvino"]
Isolation = Literal["thread", "process"]
RUNTIMES: dict[Runtime, Callable[[Path], Session]] = {
    "onnxruntime": OnnxSession,
    "openvino": OpenvinoSession,
}


@dataclass(frozen=True, slots=True)
class Running:
    """By which runtime a model runs, and where."""

    runtime: Runtime = "onnxruntime"
    isolation: Isolation = "thread"
    run_max_s: float = 60.0
    """In processes: how long one run may take before its process is taken to hang."""

    @property
    def takes_int8(self) -> bool:
        """Whether the runtime can run our row-wise int8 graph."""
        return self.runtime == "onnxruntime"

    def open(self, path: Path, slots: int) -> Session:
        """A session for `slots` callers at once; raises ModelUnavailable."""
        if self.isolation == "thread":
            return RUNTIMES[self.runtime](path)
        command = [sys.executable, "-m", "tailrace.models.session_child"]
        command += ["--path", str(path), "--runtime", self.runtime]
        return SessionProcesses(path.parent.name, command, slots, run_max_s=self.run_max_s)


IN_THREADS = Running()
