"""Hybrid search beside a remote embedding model: `make bench-baseline`.

The remote is any OpenAI-compatible API: BASELINE_URL (its base, ending in /v1), BASELINE_MODEL, and the name
of the variable that holds its key in BASELINE_KEY_ENV; prefixes in BASELINE_QUERY_PREFIX and
BASELINE_DOCUMENT_PREFIX. Without one `tailrace api` on loopback stands in with the model that the book
service has itself: then the line proves the way there and back, and says nothing about another model.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from figures import Figure, keep
from machine import fingerprint

from books import ready, start

STAND_IN = ("multilingual-e5-small", "query: ", "passage: ")
SHOWN = ("recall@10", "mrr@10", "ndcg@10")
LOSS_MAX = 0.02
"""What of recall@10 the hybrid may lose to the remote, as the recall gate has it."""


def quality(words: list[str], folder: str) -> dict[str, Any]:
    """The report of `tailrace books quality`."""
    line = [sys.executable, "-m", "tailrace.cli.main", "books", "quality", "--json", *words]
    environ = {**os.environ, "XDG_DATA_HOME": folder}
    done = subprocess.run(line, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def asked(url: str, model: str, query_prefix: str, document_prefix: str) -> list[str]:
    """The options that name the remote."""
    words = ["--baseline", url, "--baseline-model", model]
    if key_env := os.environ.get("BASELINE_KEY_ENV"):
        words += ["--baseline-key-env", key_env]
    return [
        *words,
        *("--baseline-query-prefix", query_prefix),
        *("--baseline-document-prefix", document_prefix),
    ]


def told(found: dict[str, dict[str, float]], sign: str = "") -> str:
    """The metrics with their intervals."""
    return ", ".join(
        f"{name} {found[name]['mean']:{sign}.3f} "
        f"({found[name]['low']:{sign}.2f}..{found[name]['high']:{sign}.2f})"
        for name in SHOWN
    )


def figures(report: dict[str, Any], seconds: float, own: bool) -> list[Figure]:
    """A line for each system, the difference, and the same by kind."""
    found = [
        Figure(f"{name}, all", "-", told(by_metric), True, {"by_metric": by_metric})
        for name, by_metric in report["all"].items()
    ]
    difference = report["hybrid_minus"]["baseline"]
    promised = f"recall@10 not below -{LOSS_MAX:g} for sure"
    lost = difference["recall@10"]["high"] < -LOSS_MAX
    found.append(
        Figure("hybrid - baseline, paired", promised, told(difference, "+"), not lost, difference)
    )
    if own:
        same = report["all"]["baseline"] == report["all"]["vector"]
        seen = "equal" if same else "not equal"
        found.append(Figure("our model, over HTTP and in the service", "equal", seen, same, {}))
    for kind, systems in report["kinds"].items():
        seen = "; ".join(f"{name}: {told(systems[name])}" for name in ("hybrid", "baseline"))
        found.append(Figure(f"{kind}, n {report['queries_by_kind'][kind]}", "-", seen, True, {}))
    took = f"{seconds:.0f} s, the service's own start and searches among them"
    found.append(Figure("the whole comparison", "-", took, True, {"seconds": seconds}))
    return found


async def stand_in_url(url: str) -> str:
    """The stand-in's base, once it is ready."""
    connection = await ready(url)
    await connection.close()
    return f"{url}/v1"


def main() -> int:
    """Exit code 1 where a figure is missed."""
    machine, environ, process = fingerprint(), os.environ, None
    url = environ.get("BASELINE_URL")
    model, query_prefix, document_prefix = STAND_IN
    try:
        if url is None:
            process, at = start(["api"])
            url = asyncio.run(stand_in_url(at))
        else:
            model = environ["BASELINE_MODEL"]
            query_prefix = environ.get("BASELINE_QUERY_PREFIX", "")
            document_prefix = environ.get("BASELINE_DOCUMENT_PREFIX", "")
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            report = quality(asked(url, model, query_prefix, document_prefix), folder)
        seconds = time.monotonic() - began
    finally:
        if process is not None:
            process.terminate()
            process.wait()
    what = f"our own {model} behind `tailrace api` stands in" if process else model
    title = f"Hybrid search beside a remote embedding model: {what}"
    found = figures(report, seconds, process is not None)
    keep("baseline", title, found, machine, "make bench-baseline")
    return 0 if all(one.reached for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
