"""Twenty seconds of `tailrace bench` against our own model server, as anybody would type it.

Fails where the way from the intended start to the report is broken. Runs that a busy machine makes invalid
are told and are no failure: what is looked at here is the tool, not the machine.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from figures import Figure, keep
from machine import fingerprint
from servers import EMBEDDER, api

from tailrace.latency.runs import Run, list_runs, open_run
from tailrace.wire.record import IDENTITY_MS

TAILRACE = [sys.executable, "-m", "tailrace.cli.main"]
INVALID = 2
"""The exit code of a run that cannot be believed."""


def tailrace(*words: str) -> subprocess.CompletedProcess[str]:
    """Type a command."""
    return subprocess.run([*TAILRACE, *words], capture_output=True, text=True, check=False)


async def measured(root: Path) -> list[Run]:
    """The runs of the smoke scenario against a server of our own."""
    async with api([EMBEDDER]) as server:
        words = ["bench", "run", "smoke", "--target", f"{server.url}/v1", "--root", str(root)]
        words += ["--set", f"target.model={EMBEDDER['name']}"]
        done = await asyncio.to_thread(tailrace, *words)
    print(done.stdout, done.stderr, sep="\n")
    if done.returncode not in {0, INVALID}:
        raise SystemExit(f"tailrace {' '.join(words[:3])} ended with {done.returncode}")
    return [open_run(listed.path) for listed in list_runs(root)]


def checked(runs: list[Run]) -> list[Figure]:
    """What must hold of every run, however busy the machine."""
    rows = [row for run in runs for row in run.rows]
    whole = sum(abs(row.miss_ms()) <= IDENTITY_MS for row in rows)
    answered = sum(row.outcome == "ok" for row in rows)
    told = sum("infer" in row.parts for row in rows)
    reports = sum(
        (run.path / name).exists() for run in runs for name in ("report.md", "report.html")
    )
    figures = [
        ("rows whose parts add up", whole, len(rows)),
        ("requests answered", answered, len(rows)),
        ("rows in which the server tells its inference", told, len(rows)),
        ("reports", reports, 2 * len(runs)),
    ]
    found = [
        Figure(name, f"{of}", f"{seen}", seen == of > 0, {"seen": seen, "of": of})
        for name, seen, of in figures
    ]
    for run in runs:
        s = run.summary
        shown = f"n {s.n}, p50 {s.total.p50:.1f} ms, {s.leading} leads" if s.total else "nothing"
        why = "; ".join(s.validity.reasons) or "valid"
        numbers: dict[str, Any] = {"summary": json.loads(s.model_dump_json())}
        found.append(Figure(f"{s.scenario}, {s.case}", "any", f"{shown}; {why}", True, numbers))
    return found


def main() -> None:
    """Measure, check, and keep the result where that is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="write bench/results/DATE/smoke.md")
    options = parser.parse_args()
    machine = fingerprint()
    with tempfile.TemporaryDirectory() as scratch:
        figures = checked(asyncio.run(measured(Path(scratch))))
    if options.keep:
        keep("smoke", "The whole way of a bench run", figures, machine, "make bench-smoke KEEP=1")
    for figure in figures:
        print(f"{figure.name}: {figure.seen} of {figure.promised}")
    if not all(figure.reached for figure in figures):
        raise SystemExit("the bench is broken")


if __name__ == "__main__":
    main()
