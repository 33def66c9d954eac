"""What levers do to a measured run, on rows made up so that the truth is known."""

import numpy as np
import pytest

from tailrace.core.batch import BatchRule
from tailrace.simulate.levers import parse
from tailrace.simulate.plan import LanePlan
from tailrace.simulate.prepare import prepare
from tailrace.simulate.recorded import Arrivals, CannotPredict, found_arrivals, recorded
from tailrace.simulate.replay import replay
from tailrace.simulate.visits import Visit
from tailrace.wire.record import Part, Row

DOORS = {
    "limited": LanePlan(seats=4, queue_timeout_s=15.0),
    "batched": LanePlan(
        shares=True, seats=64, batch=BatchRule(items_max=8, window_s=0.025), waiting_max=200
    ),
    "queue": LanePlan(seats=20, tickets=True),
}


def row(at_s=0.0, outcome="ok", detail=None, **ms):
    parts = {name: Part(value, "declared") for name, value in ms.items()}
    return Row(sum(ms.values()), parts, 200, outcome, at_s=at_s, detail=detail or {})


def run_of(n=200, rate=8.0, plan=None, seed=3, net=20.0, others_ms=0.0, **more):
    """A run of a lane whose truth is known: infer is 100 ms +- 30 %."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, n))
    services = rng.uniform(0.07, 0.13, n)
    visits = [
        Visit(float(a), before_s=net / 2000, weight=float(s))
        for a, s in zip(arrivals, services, strict=True)
    ]
    stays = replay(visits, plan or LanePlan(), sum).stays
    foreign = rng.exponential(others_ms, n) if others_ms else np.zeros(n)
    return [
        row(
            stay.at_s,
            net=net,
            queue=stay.queue_s * 1000 + float(extra),
            infer=stay.service_s * 1000,
            transfer=1.0,
            **more,
        )
        for stay, extra in zip(stays, foreign, strict=True)
    ]


def predicted(rows, *words, plan=None, given=None, seeds=6, **more):
    run = recorded(rows, found_arrivals(rows, given))
    forecast = prepare(run, parse(words), plan or LanePlan(), DOORS, **more)
    runs = [
        [one for one in forecast.replicate(seed, bound).rows if one.phase == "steady"]
        for seed in range(seeds)
        for bound in forecast.bounds
    ]
    return forecast, runs


def mean(runs, part=None):
    every = [one for run in runs for one in run if one.outcome == "ok"]
    return np.mean([one.wall_ms if part is None else one.parts[part].ms for one in every])


def test_without_a_lever_the_run_comes_out_as_it_was_and_every_row_adds_up():
    rows = run_of(n=400)
    forecast, runs = predicted(rows, given=Arrivals(rate=8.0))
    assert forecast.bounds == (0,)
    assert all(abs(one.miss_ms()) < 1e-3 for run in runs for one in run)
    paired = forecast.replicate(0, paired=True).rows
    assert [one.wall_ms for one in paired] == pytest.approx([one.wall_ms for one in rows])
    assert mean(runs, "infer") == pytest.approx(100, rel=0.03)
    assert mean(runs, "net") == pytest.approx(20)


def test_each_lever_changes_one_thing():
    rows = run_of(rate=2.0)
    _, nearer = predicted(rows, "net=12ms")
    assert mean(nearer, "net") == pytest.approx(12)
    assert mean(nearer, "infer") == pytest.approx(100, rel=0.03)
    _, faster = predicted(rows, "speed=2x")
    assert mean(faster, "infer") == pytest.approx(50, rel=0.03)
    assert mean(faster, "net") == pytest.approx(20)
    _, known = predicted(rows, "cache=100%")
    assert mean(known) == pytest.approx(21)


def test_two_servers_and_a_slower_stream_of_requests_shorten_the_line():
    rows = run_of(n=400)
    base = mean(predicted(rows)[1], "queue")
    assert mean(predicted(rows, "servers=2")[1], "queue") < base / 4
    assert mean(predicted(rows, "rate=0.5x")[1], "queue") < base / 3


def test_only_a_line_that_others_fill_is_emptied_by_dedicated():
    alone = run_of(rate=0.5)
    shared = run_of(rate=0.5, others_ms=170.0)
    forecast, runs = predicted(shared, "dedicated")
    assert forecast.others
    assert mean(runs, "queue") == pytest.approx(mean(predicted(alone)[1], "queue"), abs=5)
    assert mean(predicted(shared)[1], "queue") == pytest.approx(170, rel=0.2)
    forecast, _ = predicted(run_of(), "dedicated", seeds=0)
    assert not forecast.others
    assert any("its own" in said for said in forecast.caveats)
    with pytest.raises(CannotPredict, match="set dedicated as well"):
        predicted(shared, "rate=2x")


def test_a_door_with_seats_refuses_and_tells_how_many():
    rows = run_of(n=400)
    _, runs = predicted(rows, "door=limited", "seats=0", given=Arrivals(rate=8.0))
    refused = np.mean([one.outcome == "refused" for run in runs for one in run])
    assert refused == pytest.approx(0.8 / 1.8, abs=0.06), "Erlang B at a load of 0.8"


def test_a_timeout_cuts_off_and_is_never_a_latency():
    _, runs = predicted(run_of(), "timeout=150ms")
    cut = [one for run in runs for one in run if one.outcome == "timeout"]
    assert cut
    assert all(one.wall_ms == pytest.approx(150) and one.status is None for one in cut)
    assert all(abs(one.miss_ms()) < 1e-3 for one in cut)


def test_nobody_waits_longer_than_the_queue_timeout_and_whoever_would_is_refused():
    rows = run_of(n=400)
    longest = max(one.parts["queue"].ms for one in rows)
    assert longest > 100
    _, runs = predicted(rows, "queue-timeout=50ms")
    answered = [one for run in runs for one in run if one.outcome == "ok"]
    refused = [one for run in runs for one in run if one.outcome == "refused"]
    assert max(one.parts["queue"].ms for one in answered) <= 50 + 1e-6
    assert all(one.wall_ms == pytest.approx(50 + 10 + 10, abs=12) for one in refused)
    share = np.mean([one.parts["queue"].ms > 50 for one in rows])
    # Who gives up makes room for the next: fewer than would have waited that long.
    assert 0.1 < len(refused) / (len(refused) + len(answered)) < share


def test_a_window_is_waited_out_by_whoever_finds_an_idle_model():
    rows = run_of(rate=0.5)
    ladder = [(k, 0.04 + 0.06 * k) for k in (1, 2, 4, 8) for _ in range(10)]
    at_once = mean(predicted(rows, "door=batched", "window=0ms", ladder=ladder)[1])
    _, runs = predicted(rows, "door=batched", "window=200ms", ladder=ladder)
    assert mean(runs) - at_once == pytest.approx(200, rel=0.1)


def test_who_asks_again_is_answered_more_often_and_later():
    rows = run_of(n=400)
    said = ("door=limited", "seats=0")
    once = predicted(rows, *said, given=Arrivals(rate=8.0))[1]
    again = predicted(rows, *said, "retries=3", given=Arrivals(rate=8.0))[1]

    def refused(runs):
        return np.mean([one.outcome == "refused" for run in runs for one in run])

    assert refused(again) < refused(once)
    assert mean(again) > mean(once) + 20


def test_without_runs_of_several_sizes_a_shared_run_is_a_range():
    rows = run_of()
    forecast, _ = predicted(rows, "door=batched", seeds=0)
    assert forecast.bounds == (-1, 1)
    assert "only runs of one size" in forecast.doubts[0]
    ladder = [(k, 0.04 + 0.06 * k) for k in (1, 2, 4, 8) for _ in range(10)]
    forecast, _ = predicted(rows, "door=batched", seeds=0, ladder=ladder)
    assert forecast.bounds == (0,)
    assert forecast.capacity_per_s() == pytest.approx(8 / (0.04 + 8 * 0.06), rel=0.1)


def test_thinking_is_removed_only_where_it_was_seen():
    rows = [row(i, net=20.0, prefill=50.0, think=900.0, generate=60.0) for i in range(40)]
    _, runs = predicted(rows, "reasoning=off")
    assert mean(runs) == pytest.approx(130)
    _, runs = predicted(rows, "output-cap=50%")
    assert mean(runs, "generate") == pytest.approx(30)
    with pytest.raises(CannotPredict, match="seen to think"):
        predicted(run_of(), "reasoning=off")
    with pytest.raises(CannotPredict, match="how many tokens"):
        predicted(rows, "output-cap=20")


def test_thinking_that_was_estimated_makes_a_range():
    think = Part(900.0, "estimated", 700.0, 1000.0)
    rows = [
        Row(960.0, {"think": think, "generate": Part(60.0, "measured")}, 200, at_s=i)
        for i in range(40)
    ]
    forecast, runs = predicted(rows, "reasoning=off", seeds=1)
    assert forecast.bounds == (-1, 1)
    assert sorted(round(mean([run])) for run in runs) == [60, 260]


def test_a_run_that_was_cut_off_is_refused_with_what_to_do():
    rows = run_of(rate=2.0)
    late = [row(500 + i, outcome="timeout", net=20.0, infer=1480.0) for i in range(20)]
    with pytest.raises(CannotPredict, match=r"20 of 220 requests were cut off \(>= 1500 ms\)"):
        predicted([*rows, *late], "net=12ms")


def test_a_run_without_any_figure_of_the_model_is_refused():
    rows = [row(i, net=20.0, other=400.0) for i in range(40)]
    with pytest.raises(CannotPredict, match="nothing in the run says how long the model took"):
        predicted(rows, "speed=2x")
    untold = [row(i, net=20.0, infer=40.0) for i in range(40)]
    for word in ("dedicated", "rate=2x", "servers=2", "door=limited"):
        with pytest.raises(CannotPredict, match="no queue figure"):
            predicted(untold, word)
    with pytest.raises(CannotPredict, match="no figure of the path"):
        predicted([row(i, infer=40.0) for i in range(40)], "net=12ms")
    with pytest.raises(CannotPredict, match="3 answered requests are too few"):
        predicted([row(i, infer=40.0) for i in range(3)])


def test_time_without_a_name_makes_speed_a_range():
    rows = [row(i, net=20.0, infer=60.0, other=40.0) for i in range(40)]
    forecast, runs = predicted(rows, "speed=2x", seeds=1)
    assert "33% of the time has no name" in forecast.doubts[0]
    assert sorted(round(mean([run])) for run in runs) == [70, 90]


def test_requests_that_came_one_after_the_other_do_so_again():
    rows, at = [], 0.0
    for _ in range(40):
        rows.append(row(at, net=20.0, queue=0.0, infer=100.0))
        at += 0.120 + 0.5
    run = recorded(rows, found_arrivals(rows))
    assert run.arrivals.closed == 1
    assert run.arrivals.pause_s == pytest.approx(0.5)
    _, runs = predicted(rows, "net=900ms")
    assert mean(runs) == pytest.approx(1000)
    with pytest.raises(CannotPredict, match="no rate to change"):
        predicted(rows, "rate=2x")


def test_the_time_between_two_runs_is_learned_from_requests_that_waited():
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(rng.exponential(0.13, 300))
    visits = [Visit(float(a), weight=0.1, after_s=0.005) for a in arrivals]
    stays = replay(visits, LanePlan(), sum, turnaround_s=0.004).stays
    rows = [
        row(s.at_s, queue=s.queue_s * 1e3, infer=s.service_s * 1e3, other=s.after_s * 1e3)
        for s in stays
    ]
    assert recorded(rows).turnaround_s(alone=True) == pytest.approx(0.004, rel=0.01)


def test_above_nine_tenths_of_its_capacity_a_forecast_knows_its_use():
    forecast, _ = predicted(run_of(), "rate=1.2x", seeds=0, given=Arrivals(rate=8.0))
    assert forecast.use == pytest.approx(0.96, abs=0.03)
    assert forecast.offered_per_s == pytest.approx(9.6)


def test_requests_of_several_inputs_keep_their_own_times_and_share_with_nobody():
    rows = [
        row(i, queue=0.0, infer=10.0 + 5.0 * k, detail={"batch_size": k})
        for i, k in enumerate([1, 4, 8] * 20)
    ]
    _, runs = predicted(rows)
    assert {round(one.parts["infer"].ms) for run in runs for one in run} == {15, 30, 50}
    with pytest.raises(CannotPredict, match="several inputs"):
        predicted(rows, "door=batched")


def test_without_a_queue_figure_the_line_is_taken_to_stay_and_that_is_said():
    rng = np.random.default_rng(2)
    rows = [
        row(i / 20, net=20.0, infer=40.0, other=float(o))
        for i, o in enumerate(rng.exponential(60, 80))
    ]
    forecast, runs = predicted(rows, "net=5ms")
    assert any("no queue figure" in said for said in forecast.caveats)
    assert mean(runs) == pytest.approx(np.mean([one.wall_ms for one in rows]) - 15, rel=0.1)
    assert mean(runs, "queue") == 0.0, "nothing is counted twice"


def test_answers_out_of_the_servers_cache_pass_the_line_as_they_did():
    slow = [row(i / 12, net=20.0, queue=0.0, infer=100.0) for i in range(40)]
    quick = [row(i / 12 + 0.01, net=20.0, other=1.0, detail={"cache": "hit"}) for i in range(40)]
    forecast, runs = predicted([*slow, *quick])
    hits = [one for run in runs for one in run if one.parts.get("infer") is None]
    assert hits
    assert all(one.wall_ms == pytest.approx(21) for one in hits)
    assert forecast.capacity_per_s() == pytest.approx(20, rel=0.01)


def test_where_runs_are_shared_by_an_unknown_rule_nothing_is_said_of_the_line():
    rows = [
        row(i / 10, net=20.0, queue=5.0, infer=40.0, detail={"server_batch": 1 + i % 3})
        for i in range(60)
    ]
    for word in ("rate=2x", "servers=2", "dedicated"):
        with pytest.raises(CannotPredict, match="by a rule that is not known"):
            predicted(rows, word)
    _, runs = predicted(rows, "net=5ms")
    assert mean(runs) == pytest.approx(50)
    _, runs = predicted(rows, "rate=0.5x", plan=DOORS["batched"], given=Arrivals())
    assert runs
