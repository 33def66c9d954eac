"""`tailrace whatif` on kept runs whose truth is known."""

import json
from datetime import UTC, date, datetime

import numpy as np
import pytest
from typer.testing import CliRunner

from tailrace.cli.whatif import app
from tailrace.latency.prediction import BadPrediction, kept
from tailrace.latency.runs import Head, Load, RunWriter
from tailrace.simulate.plan import LanePlan
from tailrace.simulate.replay import replay
from tailrace.simulate.visits import Visit
from tailrace.wire.record import Part, Row

pytestmark = pytest.mark.alone

BEGAN = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)


def measured(at, *, net, queue, generate, other=2.0, limit=None):
    """One answered request; beyond `limit` its caller gave up."""
    ms = {"net": net, "queue": queue, "prefill": 20.0, "generate": generate, "other": other}
    if limit is not None and sum(ms.values()) > limit:
        parts = {"net": Part(net, "measured"), "other": Part(limit - net, "residual")}
        return Row(limit, parts, None, "timeout", at_s=at)
    return Row(sum(ms.values()), {n: Part(v, "declared") for n, v in ms.items()}, 200, at_s=at)


def keep_run(root, name, rows, reasons=(), best_before=date(2126, 12, 31), **plan):
    head = Head(
        id=name,
        kind="bench",
        scenario="essay",
        target="http://127.0.0.1:1/",
        began=BEGAN,
        best_before=best_before,
        plan=plan,
    )
    with RunWriter(root / name, head, env={"commit": "c0ffee"}) as writer:
        writer.append(*rows)
        writer.finish(load=Load(kind="open-constant", duration_s=1.0), reasons=reasons)
    return root / name


def far_and_shared(n=220, seed=5):
    rng = np.random.default_rng(seed)
    return [
        measured(i, net=275.0, queue=queue, generate=generate)
        for i, (queue, generate) in enumerate(
            zip(rng.lognormal(5.1, 0.5, n), rng.lognormal(3.9, 0.15, n), strict=True)
        )
    ]


def near_fast_dedicated(n=220, seed=9):
    rng = np.random.default_rng(seed)
    return [
        measured(i, net=12.0, queue=0.0, generate=generate)
        for i, generate in enumerate(rng.lognormal(3.9, 0.15, n) / 2)
    ]


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def one_line(result):
    assert result.exit_code == 2
    return " ".join(result.output.split())


def test_near_and_dedicated_saves_what_distance_and_queue_were_and_generation_leads(tmp_path):
    run = keep_run(tmp_path, "far", far_and_shared())
    result = call(run, "--set", "net=12ms", "--set", "dedicated", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.output)
    assert said["then"]["parts"]["net"]["mid"] == pytest.approx(12.0)
    assert said["then"]["parts"]["queue"]["mid"] == 0.0
    assert "generate leads" in said["said"]
    assert said["levers"] == ["net=12ms", "dedicated"]
    assert said["commit"] == "c0ffee"
    assert said["now"]["total"]["p50"]["mid"] - said["then"]["total"]["p50"]["mid"] > 400


def test_a_prediction_is_kept_and_judged_by_the_run_that_comes(tmp_path):
    far = keep_run(tmp_path, "far", far_and_shared())
    near = keep_run(tmp_path, "near", near_fast_dedicated())
    first = call(far, "--set", "net=12ms", "--set", "dedicated", "--set", "speed=2x")
    assert first.exit_code == 0, first.output
    assert "No prediction of this folder that told more" in first.output
    (path,) = (far / "predictions").glob("*.json")
    judged = call("score", path, near)
    # Prefill was 20 ms at both servers, and the lever halves it: the prediction is off there, and says so.
    assert judged.exit_code == 1, judged.output
    figures = {one.figure: one for one in kept(path).scores[0].figures}
    assert figures["net"].good
    assert figures["generate"].good
    assert not figures["prefill"].good
    assert figures["prefill"].off == pytest.approx(-0.5)
    again = call(far, "--set", "net=12ms")
    assert "Own error until now, over 1 judged predictions" in again.output


def test_a_near_but_slow_place_loses_to_the_callers_limit_and_says_so(tmp_path):
    run = keep_run(tmp_path, "far", far_and_shared(), load={"timeout": "1.5s"})
    words = ("--set", "net=25ms", "--set", "dedicated", "--set", "speed=0.03x")
    result = call(run, *words)
    assert result.exit_code == 0, result.output
    flat = " ".join(result.output.split())
    assert "the timeout wins" in flat
    assert "1,500 ms" in flat
    assert "would be cut off before they had an answer" in flat


def test_partial_optimisation_is_called_out(tmp_path):
    run = keep_run(tmp_path, "far", far_and_shared())
    words = ("--set", "speed=2x", "--set", "net=270ms")
    flat = " ".join(call(run, *words).output.split())
    assert "net=270ms alone would gain nothing" in flat
    slower = " ".join(call(run, "--set", "net=12ms", "--set", "speed=0.05x").output.split())
    assert "times slower" in slower
    assert "grows most" in slower


def test_what_cannot_be_predicted_is_one_line_and_exit_code_2(tmp_path):
    edge = [
        measured(i, net=25.0, queue=0.0, generate=g, limit=1500)
        for i, g in enumerate([900, 1600] * 30)
    ]
    run = keep_run(tmp_path, "edge", edge)
    assert "30 of 60 requests were cut off" in one_line(call(run, "--set", "speed=2x"))
    far = keep_run(tmp_path, "far", far_and_shared())
    assert "nothing is changed; set a lever" in one_line(call(far))
    assert "there is no lever 'nett'" in one_line(call(far, "--set", "nett=1ms"))
    assert "seen to think" in one_line(call(far, "--set", "reasoning=off"))
    assert "set dedicated as well" in one_line(call(far, "--set", "rate=2x"))
    assert "there is no run at" in one_line(call(tmp_path / "none", "--set", "net=1ms"))
    assert "no prediction at" in one_line(call("score", tmp_path / "p.json", far))


def test_a_prediction_of_a_newer_tailrace_or_a_damaged_one_is_refused(tmp_path):
    for text, because in (
        ("{", "no JSON"),
        ("[]", "names no schema"),
        ('{"schema": 99}', "newer tailrace"),
        ('{"schema": 1}', "damaged at made"),
    ):
        path = tmp_path / "p.json"
        path.write_text(text)
        with pytest.raises(BadPrediction, match=because):
            kept(path)


def in_a_line(n=400, rate=8.0, slots=1, seed=3):
    """A run of a server whose line is its own requests': 100 ms each, so many at once."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, n))
    services = rng.uniform(0.08, 0.12, n)
    visits = [Visit(float(a), weight=float(s)) for a, s in zip(arrivals, services, strict=True)]
    return [
        measured(
            stay.at_s, net=20.0, queue=stay.queue_s * 1000, generate=stay.service_s * 1000 - 20.0
        )
        for stay in replay(visits, LanePlan(slots=slots), sum).stays
    ]


def test_above_nine_tenths_only_ranges_are_told(tmp_path):
    run = keep_run(tmp_path, "own", in_a_line())
    said = json.loads(call(run, "--set", "rate=1.3x", "--no-keep", "--json").output)
    assert said["ranges_only"]
    assert 0.9 < said["use"] < 1.05
    assert all(band["mid"] is None for band in said["then"]["total"].values())
    assert "only ranges are told" in " ".join(said["caveats"])
    plain = json.loads(call(run, "--set", "rate=0.8x", "--no-keep", "--json").output)
    assert not plain["ranges_only"]
    assert not (run / "predictions").exists()


def test_how_many_a_server_runs_at_once_is_found_out_or_told(tmp_path):
    run = keep_run(tmp_path, "four", in_a_line(rate=30.0, slots=4))
    found = call(run, "--set", "rate=0.8x", "--no-keep")
    assert found.exit_code == 0, found.output
    assert "4 requests were on the model together" in " ".join(found.output.split())
    told = call(run, "--set", "rate=0.8x", "--no-keep", "--slots", "1")
    assert "is not the lane it is taken for; say --door, or --slots" in one_line(told)


def test_refusals_by_unknown_seats_ask_for_the_door(tmp_path):
    rows = in_a_line()
    refused = [
        Row(21.0, {"net": Part(21.0, "measured")}, 429, "refused", at_s=1.0) for _ in range(5)
    ]
    run = keep_run(tmp_path, "refused", [*rows, *refused])
    assert "say which door was measured: --door limited" in one_line(call(run, "--set", "net=1ms"))
    assert call(run, "--set", "net=1ms", "--door", "queue").exit_code == 0
    assert "there is no door 'side'" in one_line(call(run, "--set", "net=1ms", "--door", "side"))


def test_a_run_that_is_invalid_or_stale_says_so_in_its_predictions(tmp_path):
    old = date(2026, 1, 1)
    run = keep_run(tmp_path, "old", far_and_shared(40), reasons=["it rained"], best_before=old)
    flat = " ".join(call(run, "--set", "net=12ms", "--no-keep").output.split())
    assert "the run is not valid: it rained" in flat
    assert "the run was best before 2026-01-01: measure again" in flat
