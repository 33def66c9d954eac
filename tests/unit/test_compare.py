"""Two runs side by side: the exit code says which way it went, and bad input is one line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from drawn import GENERATE_BEFORE, QUEUE_AFTER, row, rows
from tailrace.cli.main import app
from tailrace.latency.compare import Measured, compare
from tailrace.wire.record import Row


def write(path: Path, run: list[Row]) -> str:
    path.write_bytes(b"".join(each.to_line() for each in run))
    return str(path)


def test_the_essays_shift_is_better_and_says_why(tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", rows(250, GENERATE_BEFORE, 1, prompts=True))
    after = write(tmp_path / "after.jsonl", rows(250, QUEUE_AFTER, 2, prompts=True))
    done = CliRunner().invoke(app, ["compare", before, after])
    assert done.exit_code == 0
    assert "moved from generate to net" in done.stdout
    assert "not by its own change" in done.stdout
    assert CliRunner().invoke(app, ["compare", after, before, "--json"]).exit_code == 1


def test_the_same_thing_measured_twice_is_seldom_worse_or_better() -> None:
    turns = [
        compare(
            Measured("a", tuple(rows(200, QUEUE_AFTER, seed))),
            Measured("b", tuple(rows(200, QUEUE_AFTER, 700 + seed))),
            resamples=500,
        ).turn
        for seed in range(40)
    ]
    assert turns.count("same") >= 36


def test_an_edge_that_cuts_requests_off_is_worse_although_it_is_near() -> None:
    cut = [
        row({"net": 20.0, "generate": 1480.0}, outcome="timeout", at_s=float(i)) for i in range(60)
    ]
    found = compare(
        Measured("far", tuple(rows(160, QUEUE_AFTER, 1))),
        Measured("edge", (*rows(100, {"net": 20.0, "queue": 50.0, "generate": 900.0}, 2), *cut)),
    )
    assert found.turn == "worse"
    assert {total.name: total.turn for total in found.totals}["answered"] == "worse"
    assert found.summaries[1].mean.value is None


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ([], "holds no rows"),
        ([row({"net": 1500.0}, outcome="timeout")] * 3, "was cut off"),
        (rows(30, QUEUE_AFTER, 1), None),
        ([row({"blocked": 5.0, "waiting": 9.0})] * 30, "no part is told apart in both"),
        ([row({"net": 5.0}, prompt="other")] * 30, "no prompt in common"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    tmp_path: Path, second: list[Row], said: str | None
) -> None:
    before = write(tmp_path / "a.jsonl", rows(30, QUEUE_AFTER, 1, prompts=True))
    done = CliRunner().invoke(app, ["compare", before, write(tmp_path / "b.jsonl", second)])
    if said is None:
        assert done.exit_code in {0, 1}
        return
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
