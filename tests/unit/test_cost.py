"""What calls cost, by the call and on a machine, from what the run measured."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from tailrace.latency.cost import MONTH_S, BadCost, Prices, cost
from tailrace.latency.report.money import cells, sentences
from tailrace.latency.runs import Head, Run
from tailrace.latency.runs.summary import summarize
from tailrace.wire.record import Part, Row

HEAD = Head(
    id="r",
    kind="bench",
    scenario="embed",
    target="http://127.0.0.1/v1",
    began=datetime(2026, 12, 1, tzinfo=UTC),
    best_before=date(2026, 12, 31),
)


def run(infer=20.0, **detail):
    row = Row(25.0, {"infer": Part(infer, "declared"), "other": Part(25.0 - infer, "residual")})
    rows = tuple(Row(row.wall_ms, row.parts, 200, at_s=i, detail=detail) for i in range(40))
    return Run(Path("r"), rows, summarize(HEAD, rows), {})


def test_the_cap_of_the_seed_pays_for_so_many_calls_a_month():
    found = cost(run(), Prices(per_call=0.5, cap=360_000, cap_months=3))
    assert found.cap_month == 120_000
    assert found.calls_within_cap == 240_000
    assert [line.within_cap for line in found.table] == [True, True, True, False, False]


def test_tokens_of_the_run_are_priced():
    prices = Prices(per_mtok_in=140, per_mtok_out=560)
    found = cost(run(input_tokens=1000, output_tokens=100), prices)
    assert found.per_call == pytest.approx(0.14 + 0.056)


def test_a_machine_breaks_even_by_traffic():
    found = cost(run(), Prices(per_call=0.2, machine_month=60_000))
    assert found.break_even == 300_000
    assert found.calls_month_of_a_machine == pytest.approx(MONTH_S * 0.7 / 3 / 0.020)
    assert [row[4] for row in cells(found, "en")][2:4] == ["by the call", "machine"]


def test_a_machine_that_is_dear_by_the_call_never_pays():
    found = cost(run(infer=24_000.0), Prices(per_call=0.01, machine_month=60_000))
    assert found.break_even is None
    assert any("never" in line for line in sentences(found, "en"))
    assert found.table[-1].machines > 100


def test_what_shares_a_batch_shares_its_time():
    alone, shared = (cost(run(**d), Prices(per_call=1)) for d in ({}, {"server_batch": 4}))
    assert shared.busy_ms == pytest.approx(alone.busy_ms / 4)


def test_prices_that_do_not_fit_are_refused():
    with pytest.raises(BadCost, match="no output tokens"):
        cost(run(), Prices(per_mtok_out=1))
    for wrong in ({}, {"per_call": -1}, {"per_call": 1, "cap": 0}, {"per_call": float("nan")}):
        with pytest.raises(ValidationError):
            Prices(**wrong)


def test_both_languages_say_the_same_figures():
    found = cost(run(), Prices(per_call=0.5, machine_month=60_000, cap=360_000))
    korean, english = sentences(found, "ko"), sentences(found, "en")
    assert len(korean) == len(english)
    assert all(any(c.isdigit() for c in line) for line in korean)
