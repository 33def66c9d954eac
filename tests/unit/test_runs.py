"""A run's folder gives back what was put in, and never a number out of a damaged one."""

from datetime import UTC, date, datetime

import orjson
import pytest

from tailrace.latency.runs import (
    BadRun,
    Head,
    Load,
    RunWriter,
    list_runs,
    named_folder,
    new_folder,
    open_run,
)
from tailrace.latency.runs.folder import ENV, ROWS, SUMMARY
from tailrace.latency.runs.summary import UNFINISHED, figures
from tailrace.latency.sample import sample
from tailrace.wire.record import Part, Row

BEGAN = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)


def head(**more):
    given = {
        "id": "r1",
        "kind": "bench",
        "scenario": "embed",
        "target": "http://127.0.0.1:8080/v1/embeddings",
        "began": BEGAN,
        "best_before": date(2026, 12, 31),
    }
    return Head(**{**given, **more})


def row(wall, infer, outcome="ok", phase="steady", **more):
    parts = {"infer": Part(infer, "declared"), "other": Part(wall - infer, "residual")}
    return Row(float(wall), parts, 200, outcome, phase=phase, **more)


def kept(path, rows, **more):
    with RunWriter(path, head(**more), env={"cores": 2}) as writer:
        writer.append(*rows)
        writer.finish(load=Load(kind="closed", duration_s=1.0))
    return path


def test_a_run_reads_back_as_it_was_kept(tmp_path):
    rows = [row(10 + i, 8) for i in range(40)]
    run = open_run(kept(tmp_path / "a", rows))
    assert run.rows == tuple(rows)
    assert run.env == {"cores": 2}
    assert run.summary.n == 40
    assert run.summary.validity.valid
    assert run.summary.leading == "other"
    assert run.summary.began == BEGAN


def test_rows_survive_a_run_that_never_finished(tmp_path):
    with RunWriter(tmp_path / "a", head(), env={}) as writer:
        writer.append(row(10, 9), row(12, 9))
    with (tmp_path / "a" / ROWS).open("ab") as file:
        file.write(b'{"wall_ms": 3, "par')  # the power went here
    run = open_run(tmp_path / "a")
    assert [r.wall_ms for r in run.rows] == [10, 12]
    assert run.summary.n == 2
    assert run.summary.validity.reasons == (UNFINISHED,)


def test_a_folder_that_holds_a_run_is_not_written_over(tmp_path):
    kept(tmp_path / "a", [row(1, 1)])
    with pytest.raises(BadRun, match="already holds a run"):
        RunWriter(tmp_path / "a", head(), env={})


def damage_summary(folder, **changed):
    body = orjson.loads((folder / SUMMARY).read_bytes())
    (folder / SUMMARY).write_bytes(orjson.dumps({**body, **changed}))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda f: (f / SUMMARY).unlink(), "holds no summary.json"),
        (lambda f: (f / SUMMARY).write_text("{"), "is no JSON"),
        (lambda f: (f / SUMMARY).write_text("[]"), "names no schema"),
        (lambda f: damage_summary(f, schema=99), "newer tailrace"),
        (lambda f: damage_summary(f, began="soon"), "damaged at began"),
        (lambda f: (f / ROWS).unlink(), "holds no rows.jsonl"),
        (lambda f: (f / ROWS).write_text(""), "nothing was measured"),
        (lambda f: (f / ROWS).write_text("{}\n"), "line 1 of .* is no row"),
        (lambda f: (f / ROWS).write_text('{"wall_ms":5,"parts":{}}\n'), "miss the wall time"),
        (lambda f: (f / ENV).write_text("[]"), "env.json is missing or no JSON object"),
    ],
)
def test_a_damaged_folder_is_one_clear_sentence(tmp_path, harm, said):
    folder = kept(tmp_path / "a", [row(10, 9)])
    harm(folder)
    with pytest.raises(BadRun, match=said) as bad:
        open_run(folder)
    assert "\n" not in str(bad.value)


def test_a_folder_that_is_not_there_says_where_to_look(tmp_path):
    with pytest.raises(BadRun, match="tailrace runs"):
        open_run(tmp_path / "none")
    with pytest.raises(BadRun, match="no folder"):
        list_runs(tmp_path / "none")


def test_the_listing_is_newest_first_and_shows_what_it_cannot_read(tmp_path):
    kept(tmp_path / "old", [row(1, 1)], began=datetime(2026, 1, 1, tzinfo=UTC))
    kept(tmp_path / "deep" / "new", [row(1, 1)])
    broken = kept(tmp_path / "broken", [row(1, 1)])
    (broken / SUMMARY).write_text("{")
    found = list_runs(tmp_path)
    assert [one.path.name for one in found] == ["new", "old", "broken"]
    assert "no JSON" in found[2].trouble
    assert found[0].stale(date(2027, 1, 1))
    assert not found[0].stale(date(2026, 12, 31))


def test_two_runs_of_one_second_get_folders_of_their_own(tmp_path):
    first, second = (new_folder(tmp_path, "embed / 8 x 4", BEGAN) for _ in range(2))
    assert first.name == "2026-12-01T030000Z-embed-8-x-4"
    assert second != first


def test_the_tail_budget_adds_up_where_quantiles_do_not():
    rows = [row(10 + i % 7 + (100 if i % 20 == 0 else 0), 8 + i % 3) for i in range(400)]
    total, parts = figures(sample(rows))
    assert sum(part.tail for part in parts.values()) == pytest.approx(total.tail)
    assert sum(part.share for part in parts.values()) == pytest.approx(1.0)


def test_a_quantile_is_told_only_where_enough_lies_beyond_it():
    total, _ = figures(sample([row(i, 1) for i in range(1, 200)]))
    assert total.p95 is None
    total, _ = figures(sample([row(i, 1) for i in range(1, 201)]))
    assert (total.p50, total.p95, total.p99) == (100.5, pytest.approx(190.05), None)


def test_a_quantile_beyond_the_client_limit_is_not_told(tmp_path):
    rows = [row(i, 1) for i in range(1, 181)] + [row(1500, 1, "timeout") for _ in range(20)]
    run = open_run(kept(tmp_path / "a", rows))
    assert run.summary.total.p50 == 100.5
    assert run.summary.total.p95 is None
    assert (run.summary.n, run.summary.censored, run.summary.censored_from_ms) == (200, 20, 1500.0)


def test_cold_and_refused_requests_are_in_no_figure(tmp_path):
    rows = [row(900, 1, phase="cold"), row(1, 0, "refused"), *(row(10, 9) for _ in range(5))]
    summary = open_run(kept(tmp_path / "a", rows)).summary
    assert summary.total.worst == 10.0
    assert summary.phases == {"cold": 1, "steady": 6}
    assert summary.outcomes == {"refused": 1, "ok": 5}


def test_a_run_may_have_a_name_once(tmp_path):
    assert named_folder(tmp_path / "runs", "before") == tmp_path / "runs" / "before"
    for name, said in (("before", "already"), ("../a", "no name"), ("", "no name")):
        with pytest.raises(BadRun, match=said):
            named_folder(tmp_path / "runs", name)
