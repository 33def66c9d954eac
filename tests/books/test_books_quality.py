"""What the shipped catalogue promises: the fusion does not lose to its legs."""

import json
import os
import subprocess
import sys

import pytest

MARGIN = 0.05
"""What eight queries of a kind may differ by chance: less than half a query."""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    run = subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", "books", "quality", "--json"],
        env={**os.environ, "XDG_DATA_HOME": str(data), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def mean(found, system, metric):
    return found[system][metric]["mean"]


@pytest.mark.model
def test_the_fusion_reaches_what_the_guide_says(report):
    assert report["without_labels"] == 0
    assert mean(report["all"], "hybrid", "recall@10") >= 0.84
    assert mean(report["all"], "hybrid", "mrr@10") >= 0.93


@pytest.mark.model
def test_on_no_kind_of_query_does_the_fusion_lose_to_its_better_leg(report):
    for kind, found in report["kinds"].items():
        best = max(mean(found, leg, "recall@10") for leg in ("keyword", "vector"))
        assert mean(found, "hybrid", "recall@10") >= best - MARGIN, kind
