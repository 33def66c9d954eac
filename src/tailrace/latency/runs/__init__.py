"""Runs as folders: what was measured, on what, under which load, and whether it can be believed."""

from tailrace.latency.runs.errors import BadRun
from tailrace.latency.runs.folder import (
    Listed,
    Run,
    RunWriter,
    list_runs,
    named_folder,
    new_folder,
    open_run,
    refigure,
)
from tailrace.latency.runs.summary import Figures, Head, Load, Summary, Validity

__all__ = [
    "BadRun",
    "Figures",
    "Head",
    "Listed",
    "Load",
    "Run",
    "RunWriter",
    "Summary",
    "Validity",
    "list_runs",
    "named_folder",
    "new_folder",
    "open_run",
    "refigure",
]
