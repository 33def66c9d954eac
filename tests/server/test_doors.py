"""Four doors to one model, by real clients on a real port."""

import asyncio
import itertools
import json
import time
from collections import Counter
from typing import Any

import httpx
import pytest

from boxes import DOORS, POISON, SERVICE_S, Served, fresh, parts_of, problem_of, serving
from tailrace.bench.crowd import Caller

pytestmark = pytest.mark.alone

REPLY = ("naive", "limited", "batched")


def statuses(callers: list[Caller]) -> Counter[int]:
    return Counter(caller.status for caller in callers)


# -- limited ------------------------------------------------------------------------------------


def test_limited_answers_five_of_twelve_and_refuses_seven_before_any_is_answered(
    box: Served,
) -> None:
    callers = box.crowd("limited", fresh(12))
    assert statuses(callers) == {200: 5, 429: 7}
    served = sorted(c.round_trip_ms or 0 for c in callers if c.status == 200)
    refused = sorted(c.round_trip_ms or 0 for c in callers if c.status == 429)
    assert refused[-1] < served[-1]
    assert refused[3] < served[1]


def test_limited_runs_one_by_one_and_nobody_waits_longer_than_the_seats_ahead(box: Served) -> None:
    callers = [c for c in box.crowd("limited", fresh(12)) if c.status == 200]
    waits = sorted(c.body["waited_ms"] for c in callers)
    slowest = max(c.body["inference_ms"] for c in callers)
    assert waits[-1] <= 5 * slowest * 1.25
    gaps = [later - earlier for earlier, later in itertools.pairwise(waits)]
    assert min(gaps) >= 0.5 * min(c.body["inference_ms"] for c in callers)


def test_a_refusal_says_when_to_return_in_whole_seconds_and_exactly(box: Served) -> None:
    refused = [c for c in box.crowd("limited", fresh(12)) if c.status == 429]
    for caller in refused:
        assert int(caller.headers["retry-after"]) >= 1
        assert (
            1 <= int(caller.headers["retry-after-ms"]) <= 1000 * int(caller.headers["retry-after"])
        )
        assert caller.headers["content-type"] == "application/problem+json"
        assert caller.body["code"] == "lane-full"
        assert caller.body["door"] == "limited"
        assert caller.body["retry_after_s"] == int(caller.headers["retry-after"])
        parts_of(caller.headers)
    assert len({c.headers["retry-after-ms"] for c in refused}) > 1


@pytest.mark.parametrize("header", ["retry-after", "retry-after-ms"])
def test_those_who_return_when_told_are_nearly_all_served(box: Served, header: str) -> None:
    unit = 1.0 if header == "retry-after" else 0.001

    async def visit(client: httpx.AsyncClient, text: str) -> httpx.Response:
        return await client.post(DOORS["limited"], json={"text": text})

    async def caller(client: httpx.AsyncClient, text: str) -> int | None:
        first = await visit(client, text)
        if first.status_code != 429:
            return None
        await asyncio.sleep(int(first.headers[header]) * unit)
        return (await visit(client, text)).status_code

    async def main() -> list[int | None]:
        limits = httpx.Limits(max_connections=40)
        async with httpx.AsyncClient(
            base_url=box.url, timeout=60, limits=limits, trust_env=False, verify=False
        ) as client:
            return await asyncio.gather(*(caller(client, text) for text in fresh(17)))

    second = [status for status in asyncio.run(main()) if status is not None]
    assert len(second) >= 9
    assert second.count(200) >= 0.75 * len(second)


# -- queue --------------------------------------------------------------------------------------


def test_the_queue_takes_all_twelve_gives_each_a_place_and_brings_all_to_an_end(
    box: Served,
) -> None:
    callers = box.crowd("queue", fresh(12))
    assert statuses(callers) == {202: 12}
    assert all(c.answered for c in callers)
    positions = sorted(c.body["position"] for c in callers)
    assert positions[0] == 0
    assert positions[-1] >= 9, "some may have been served while the last one came"
    assert len(set(positions)) >= 9
    for caller in callers:
        assert set(caller.body) >= {"job_id", "status", "position", "eta_seconds"}
        assert caller.headers["location"] == f"/api/queue/jobs/{caller.body['job_id']}"
        assert caller.body["eta_seconds"] > 0
        done = caller.ticket
        assert (done["status"], done["position"], done["eta_seconds"]) == ("done", None, None)
        assert done["waited_ms"] >= 0
        assert done["inference_ms"] > 0
        assert len(done["result"]["topics"]) == 24


def test_the_time_a_ticket_promises_is_roughly_the_time_it_takes(box: Served) -> None:
    callers = box.crowd("queue", fresh(12))
    for caller in callers:
        promised, real = caller.body["eta_seconds"], (caller.done_ms or 0.0) / 1000
        assert abs(promised - real) <= max(0.5, 0.5 * real)


def test_tickets_are_answered_in_the_order_of_their_places(box: Served) -> None:
    callers = sorted(box.crowd("queue", fresh(8)), key=lambda c: c.body["eta_seconds"])
    waits = [c.ticket["waited_ms"] for c in callers]
    assert waits == sorted(waits)


def test_more_than_twenty_waiting_tickets_are_refused_with_a_time_to_return() -> None:
    with serving(seconds=0.15, naive__enabled=False) as box, box.client() as client:
        answers = [client.post(DOORS["queue"], json={"text": text}) for text in fresh(24)]
        taken = [a for a in answers if a.status_code == 202]
        refused = [a for a in answers if a.status_code == 429]
        assert 20 <= len(taken) <= 23
        assert len(taken) + len(refused) == 24
        for answer in refused:
            problem_of(answer, 429, "lane-full")
            assert int(answer.headers["retry-after"]) >= 1
        assert box.stats()["doors"]["queue"]["refused"] == {"lane-full": len(refused)}
        box.quiet()
        done = [client.get(a.headers["location"]).json()["status"] for a in taken]
        assert done == ["done"] * len(taken)


def test_a_failed_ticket_says_why_and_the_next_one_is_served(box: Served) -> None:
    bad, good = box.crowd("queue", [POISON, *fresh(1)])
    assert bad.ticket["status"] == "failed"
    assert bad.ticket["error"]["code"] == "model-failed"
    assert "result" not in bad.ticket
    assert good.ticket["status"] == "done"


def test_an_unknown_ticket_is_404_and_an_expired_one_410() -> None:
    with serving(seconds=0.01, naive__enabled=False, tickets__kept_max=1) as box:
        problem_of(box.get("/api/queue/jobs/never-given-out"), 404, "ticket-unknown")
        problem_of(box.get("/api/queue/jobs/%00%ff"), 404, "ticket-unknown")
        first, second = box.crowd("queue", fresh(2))
        places = sorted([first, second], key=lambda c: c.done_ms or 0)
        gone = [box.get(f"/api/queue/jobs/{c.body['job_id']}") for c in places]
        assert sorted(answer.status_code for answer in gone) == [200, 410]
        problem_of(next(a for a in gone if a.status_code == 410), 410, "ticket-expired")


# -- batched ------------------------------------------------------------------------------------


def test_batched_runs_what_gathers_together_and_says_with_how_many(box: Served) -> None:
    callers = box.crowd("batched", fresh(12))
    assert statuses(callers) == {200: 12}
    sizes = Counter(int(c.headers["x-batch-size"]) for c in callers)
    assert max(sizes) <= 8
    assert max(sizes) > 1
    assert all(count % size == 0 for size, count in sizes.items())


def test_a_lone_caller_of_the_batched_door_waits_out_the_window_in_a_part_of_its_own(
    box: Served,
) -> None:
    answer = box.ask("batched", fresh()[0])
    assert answer.headers["x-batch-size"] == "1"
    assert parts_of(answer.headers)["batch"] >= 20.0


def test_a_poisoned_text_fails_alone_among_its_batch(box: Served) -> None:
    callers = box.crowd("batched", [*fresh(3), POISON, *fresh(3)])
    assert [c.status for c in callers] == [200, 200, 200, 500, 200, 200, 200]
    assert callers[3].body["code"] == "model-failed"


def test_limited_and_batched_share_one_lane(box: Served) -> None:
    async def main() -> list[httpx.Response]:
        async with httpx.AsyncClient(
            base_url=box.url, timeout=60, trust_env=False, verify=False
        ) as client:
            return await asyncio.gather(
                *(
                    client.post(DOORS[door], json={"text": text})
                    for door, text in zip(["limited", "batched"] * 4, fresh(8), strict=True)
                )
            )

    before = len(box.model.script.runs)
    answers = asyncio.run(main())
    assert all(a.status_code in {200, 429} for a in answers)
    for texts in box.model.script.runs[before:]:
        assert len(texts) <= 8
    alone = [a for a in answers if a.json().get("door") == "limited" and a.status_code == 200]
    assert all(a.headers["x-batch-size"] == "1" for a in alone)


# -- naive --------------------------------------------------------------------------------------


def test_a_few_at_the_naive_door_are_all_answered(box: Served) -> None:
    callers = box.crowd("naive", fresh(3))
    assert statuses(callers) == {200: 3}
    assert all(c.headers["x-batch-size"] == "1" for c in callers)
    for caller in callers:
        assert set(parts_of(caller.headers)) >= {"parse", "wait", "infer", "serialize"}


def test_twelve_at_the_naive_door_kill_the_child_and_nobody_elses_answer(box: Served) -> None:
    before = box.stats()["naive"]["restarts"]

    async def main() -> tuple[list[httpx.Response], list[httpx.Response]]:
        limits = httpx.Limits(max_connections=40)
        async with httpx.AsyncClient(
            base_url=box.url, timeout=60, limits=limits, trust_env=False, verify=False
        ) as client:
            naive = [
                asyncio.create_task(client.post(DOORS["naive"], json={"text": text}))
                for text in fresh(12)
            ]
            others = [
                await client.post(DOORS[door], json={"text": fresh()[0]})
                for door in ("limited", "batched", "queue")
            ]
            return await asyncio.gather(*naive), others

    naive, others = asyncio.run(main())
    assert [a.status_code for a in others] == [200, 200, 202]
    died = [a for a in naive if a.status_code == 502]
    assert len(died) >= 5
    assert {a.status_code for a in naive} <= {200, 502}
    for answer in died:
        assert answer.json()["code"] in {"model-died", "model-restarting"}
        problem_of(answer, 502, answer.json()["code"])
        assert int(answer.headers["retry-after"]) >= 1
    after = box.quiet()["naive"]
    assert after["restarts"] == before + 1
    assert after["killed_because"] == "limit"
    assert box.ask("naive", fresh()[0]).status_code == 200


def test_a_child_that_exits_by_itself_is_counted_as_a_crash_and_restarted(box: Served) -> None:
    pid = box.box.child.pid if box.box.child else None
    assert pid is not None
    before = box.stats()["naive"]["restarts"]
    import os
    import signal

    os.kill(pid, signal.SIGKILL)
    stats = box.until(lambda s: s["naive"]["restarts"] > before and s["naive"]["state"] == "ready")
    assert stats["naive"]["killed_because"] == "kernel"
    assert box.ask("naive", fresh()[0]).status_code == 200


def test_an_error_inside_the_child_is_one_callers_error_and_no_death(box: Served) -> None:
    before = box.stats()["naive"]["restarts"]
    problem_of(box.ask("naive", "raise " + fresh()[0]), 500, "model-failed")
    assert box.stats()["naive"]["restarts"] == before


def test_a_naive_door_that_is_switched_off_says_so() -> None:
    with serving(seconds=0.0, naive__enabled=False) as box:
        answer = box.ask("naive", "text")
        assert answer.status_code in {404, 422, 503}
        assert "switched off" in answer.json()["detail"]
        assert box.stats()["naive"] is None


# -- the cache ----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", list(DOORS))
def test_an_answer_given_at_any_door_is_known_at_every_door(box: Served, first: str) -> None:
    text = fresh()[0]
    asked = box.crowd(first, [text])[0]
    assert asked.headers["x-cache"] == "miss"
    if first == "queue":
        box.quiet()
    scores = []
    for door in DOORS:
        again = box.ask(door, text)
        assert again.headers["x-cache"] == "hit", door
        assert "x-batch-size" not in again.headers
        body = again.json()
        if door == "queue":
            assert (again.status_code, body["status"]) == (202, "done")
            scores.append(body["result"]["topics"])
        else:
            assert again.status_code == 200
            assert (body["waited_ms"], body["inference_ms"]) == (0, 0)
            scores.append(body["topics"])
    assert all(topics == scores[0] for topics in scores)


def test_a_failure_is_not_remembered(box: Served) -> None:
    assert box.ask("limited", POISON).status_code == 500
    assert box.ask("limited", POISON).status_code == 500


# -- what every answer says ---------------------------------------------------------------------


@pytest.mark.parametrize("door", REPLY)
def test_an_answer_has_the_seeds_names_and_topics_best_first(box: Served, door: str) -> None:
    body = box.ask(door, fresh()[0]).json()
    assert {"topics", "waited_ms", "inference_ms"} <= set(body)
    scores = [topic["score"] for topic in body["topics"]]
    assert scores == sorted(scores, reverse=True)
    assert all(set(topic) == {"id", "label", "score"} for topic in body["topics"])
    assert len(scores) == 24


def test_the_parts_of_an_answer_agree_with_its_body(box: Served) -> None:
    for caller in box.crowd("limited", fresh(5)):
        if caller.status != 200:
            continue
        parts = parts_of(caller.headers)
        assert parts["wait"] + parts["batch"] == pytest.approx(caller.body["waited_ms"], abs=0.01)
        inference = parts["tokenize"] + parts["infer"] + parts["post"]
        assert inference == pytest.approx(caller.body["inference_ms"], abs=0.01)
        assert inference >= 0.9 * SERVICE_S * 1000
        assert (caller.round_trip_ms or 0.0) >= sum(parts.values()) - 0.05


# -- deadlines, rates, timeouts -----------------------------------------------------------------


@pytest.mark.parametrize("door", ["limited", "batched"])
def test_a_deadline_that_cannot_be_met_is_refused_at_once(box: Served, door: str) -> None:
    runs = len(box.model.script.runs)
    answer = box.ask(door, fresh()[0], X_Deadline_Ms="5")
    problem_of(answer, 503, "deadline-infeasible")
    assert int(answer.headers["retry-after"]) >= 1
    assert len(box.model.script.runs) == runs


def test_a_deadline_that_could_be_met_later_says_when() -> None:
    with serving(seconds=0.4, naive__enabled=False) as box:
        box.crowd("limited", fresh(1))
        tickets = [box.ask("queue", text) for text in fresh(4)]
        answer = box.ask("limited", fresh()[0], X_Deadline_Ms="700")
        problem_of(answer, 503, "deadline-infeasible")
        assert int(answer.headers["retry-after"]) >= 1
        assert [t.status_code for t in tickets] == [202] * 4
        box.quiet()
        assert box.ask("limited", fresh()[0], X_Deadline_Ms="5000").status_code == 200


@pytest.mark.parametrize("door", ["limited", "batched"])
def test_a_deadline_that_can_be_met_is_met(box: Served, door: str) -> None:
    assert box.ask(door, fresh()[0], X_Deadline_Ms="20000").status_code == 200


@pytest.mark.parametrize("given", ["0", "-5", "nan", "inf", "-inf", "soon", "", "1e999", "5 ms"])
def test_a_deadline_that_is_no_time_is_a_mistake_of_the_caller(box: Served, given: str) -> None:
    problem_of(box.ask("limited", fresh()[0], X_Deadline_Ms=given), 422, "invalid-input")


def test_each_key_has_its_own_rate_at_each_door() -> None:
    limit = [{"kind": "rate-limit", "per_second": 0.01, "burst": 2}]
    with serving(
        seconds=0.0,
        naive__enabled=False,
        cache__entries_max=0,
        doors__limited__policies=limit,
        doors__queue__policies=limit,
    ) as box:
        for door, good in (("limited", 200), ("queue", 202)):
            for key in ("ann", "bob"):
                answers = [box.ask(door, text, X_API_Key=key) for text in fresh(3)]
                assert [a.status_code for a in answers] == [good, good, 429]
                problem_of(answers[2], 429, "rate-limited")
                assert int(answers[2].headers["retry-after"]) >= 50
        assert box.stats()["doors"]["limited"]["refused"] == {"rate-limited": 2}


def test_who_waits_too_long_gets_503_at_that_moment_and_is_told_when_to_return() -> None:
    policies = [
        {"kind": "waiting-room", "seats": 20},
        {"kind": "queue-timeout", "seconds": 0.5},
    ]
    with serving(seconds=0.4, naive__enabled=False, doors__limited__policies=policies) as box:
        callers = box.crowd("limited", fresh(6))
        assert statuses(callers) == {200: 2, 503: 4}
        late = [c for c in callers if c.status == 503]
        assert {c.body["code"] for c in late} == {"queue-timeout"}
        for caller in late:
            assert int(caller.headers["retry-after"]) >= 1
            assert parts_of(caller.headers)["wait"] == pytest.approx(500, rel=0.3)
        assert box.stats()["doors"]["limited"]["refused"] == {"queue-timeout": 4}


# -- hanging up ---------------------------------------------------------------------------------


async def hang_up(port: int, path: str, text: str, after_s: float) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"text": text}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    await asyncio.sleep(after_s)
    writer.close()


def test_forty_who_hang_up_while_waiting_cost_the_next_caller_one_run_at_most() -> None:
    rooms = [{"kind": "waiting-room", "seats": 60}]
    with serving(seconds=0.3, naive__enabled=False, doors__limited__policies=rooms) as box:

        async def forty() -> None:
            await asyncio.gather(
                *(hang_up(box.port, DOORS["limited"], text, 0.15) for text in fresh(40))
            )

        asyncio.run(forty())
        began = time.monotonic()
        answer = box.ask("limited", fresh()[0])
        took = time.monotonic() - began
        assert answer.status_code == 200
        assert took <= 20 * 0.3, "of 41 runs that were asked for"
        assert len(box.model.script.runs) <= 3
        stats = box.quiet()
        assert stats["doors"]["limited"]["in_progress"] == 0
        assert box.get("/readyz").status_code == 200


@pytest.mark.parametrize("door", list(DOORS))
@pytest.mark.parametrize("after_s", [0.0, 0.01])
def test_hanging_up_right_after_sending_leaves_nothing_behind(
    box: Served, door: str, after_s: float
) -> None:
    async def many() -> None:
        await asyncio.gather(*(hang_up(box.port, DOORS[door], text, after_s) for text in fresh(3)))

    asyncio.run(many())
    assert box.quiet()["doors"][door]["in_progress"] == 0
    assert box.ask("limited", fresh()[0]).status_code == 200


def test_hanging_up_in_the_window_of_a_batch_does_not_hurt_the_others(box: Served) -> None:
    async def main() -> list[httpx.Response]:
        async with httpx.AsyncClient(
            base_url=box.url, timeout=60, trust_env=False, verify=False
        ) as client:
            stay = [client.post(DOORS["batched"], json={"text": text}) for text in fresh(3)]
            leave = [hang_up(box.port, DOORS["batched"], text, 0.005) for text in fresh(3)]
            answers = await asyncio.gather(*stay, *leave)
            return [a for a in answers if a is not None]

    assert [a.status_code for a in asyncio.run(main())] == [200] * 3


def test_hang_ups_do_not_make_the_box_unready(box: Served) -> None:
    for text in fresh(5):
        asyncio.run(hang_up(box.port, DOORS["limited"], text, SERVICE_S / 2))
        box.quiet()
    assert box.get("/readyz").json() == {"ready": True}


# -- a failing model ----------------------------------------------------------------------------


def test_a_model_that_fails_three_times_makes_the_box_unready_until_it_answers_again() -> None:
    with serving(seconds=0.0, naive__enabled=False) as box:
        assert box.get("/readyz").status_code == 200
        for _ in range(3):
            problem_of(box.ask("limited", POISON), 500, "model-failed")
        unready = box.get("/readyz")
        problem_of(unready, 503, "not-ready")
        assert box.get("/livez").status_code == 200
        assert box.ask("limited", fresh()[0]).status_code == 200
        assert box.get("/readyz").status_code == 200


def test_alive_is_answered_while_the_lane_is_saturated() -> None:
    with serving(seconds=0.5, naive__enabled=False) as box, box.client() as client:
        tickets: list[Any] = [client.post(DOORS["queue"], json={"text": t}) for t in fresh(6)]
        began = time.monotonic()
        for _ in range(20):
            assert client.get("/livez").status_code == 200
        assert time.monotonic() - began < 3.0, "less than the six runs that are waiting"
        assert box.stats()["tickets"]["queued"] > 0
        assert len(tickets) == 6
