"""A watch on a virtual clock: its schedule, its history, gaps, and when an answer expires."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from tailrace.latency.runs import Head, RunWriter, new_folder
from tailrace.latency.watch.history import FILE, BadHistory, History
from tailrace.latency.watch.port import Taken
from tailrace.latency.watch.rounds import Event, Watch
from tailrace.simulate.virtual import VirtualLoop, run_virtual
from tailrace.wire.record import Part, Row

BEGAN = 1_790_000_000.0
QUESTION = {"target": "http://127.0.0.1:1/"}
GENERATE, NET = {"generate": 900.0, "queue": 120.0}, {"generate": 60.0, "queue": 700.0}


class Clock:
    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop

    def now(self) -> float:
        return BEGAN + self.loop.time()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


class Script:
    """Runs as they are written down: means of parts, or None for a target that is down."""

    def __init__(self, rounds: Sequence[dict[str, float] | None]) -> None:
        self.rounds = list(rounds)
        self.began: list[datetime] = []

    async def measure(self, root: Path, began: datetime) -> list[Taken]:
        chance = np.random.default_rng(len(self.began))
        self.began.append(began)
        parts = self.rounds[len(self.began) - 1]
        if parts is None:
            return [Taken("", gap="nobody answers")]
        folder = new_folder(root, "run", began)
        head = Head(
            id=folder.name,
            kind="watch",
            scenario="probe",
            target="t",
            began=began,
            best_before=(began + timedelta(days=30)).date(),
        )
        with RunWriter(folder, head, env={}) as writer:
            for _ in range(60):
                drawn = {
                    name: ms * float(np.exp(0.2 * chance.normal())) for name, ms in parts.items()
                }
                row = {name: Part(ms, "measured") for name, ms in drawn.items()}
                writer.append(Row(sum(drawn.values()), row, 200))
            return [Taken("", folder, writer.finish())]


def watched(
    folder: Path, rounds: Sequence[dict[str, float] | None], every_s: float = 900.0, keep: int = 500
) -> tuple[list[Event], Script]:
    script, events = Script(rounds), list[Event]()

    async def tell(event: Event) -> None:
        events.append(event)

    async def main(loop: VirtualLoop) -> None:
        with History(folder, QUESTION) as history:
            job = Watch(
                "w", history, script, tell, Clock(loop), every_s, random.Random(1), keep, 400
            )
            await job.run(len(rounds))

    run_virtual(main)
    return events, script


def test_rounds_are_jittered_around_the_interval(tmp_path: Path) -> None:
    _, script = watched(tmp_path, [None] * 200)
    waits = [(b - a).total_seconds() for a, b in zip(script.began, script.began[1:], strict=False)]
    assert min(waits) >= 810 - 1e-6
    assert max(waits) <= 990 + 1e-6
    assert len({round(wait) for wait in waits}) > 50
    assert abs(np.mean(waits) - 900) < 15


def test_an_answer_that_holds_is_no_news(tmp_path: Path) -> None:
    events, _ = watched(tmp_path, [GENERATE] * 14)
    assert {event.kind for event in events} == {"measured"}
    assert not any(event.news for event in events)
    assert {event.point.leader for event in events} == {"generate"}


def test_a_leading_part_that_moved_is_told_once_and_is_the_new_answer(tmp_path: Path) -> None:
    events, _ = watched(tmp_path, [GENERATE] * 3 + [NET] * 6)
    told = [(at, one.why, one.text) for at, e in enumerate(events) for one in e.point.expired]
    assert [(at, why) for at, why, _ in told] == [(3, "moved")]
    assert "moved from generate to queue" in told[0][2]


def test_another_level_with_the_same_leader_is_a_change(tmp_path: Path) -> None:
    slower = {name: ms * 2.5 for name, ms in GENERATE.items()}
    events, _ = watched(tmp_path, [GENERATE] * 12 + [slower] * 8)
    told = [(at, one.why) for at, e in enumerate(events) for one in e.point.expired]
    assert [why for _, why in told] == ["changed"]
    assert 14 <= told[0][0] <= 16
    assert events[told[0][0]].point.expired[0].since == events[12].point.at


def test_a_target_that_is_down_is_a_gap_without_figures(tmp_path: Path) -> None:
    events, _ = watched(tmp_path, [GENERATE, None, None, GENERATE])
    assert [event.kind for event in events] == ["measured", "down", "down", "measured"]
    assert [event.news for event in events] == [False, True, False, True]
    gap = events[1].point
    assert (gap.total, gap.parts, gap.leader, gap.n) == (None, {}, None, 0)


def test_past_its_best_before_an_answer_expires_even_where_nobody_answers(tmp_path: Path) -> None:
    events, _ = watched(tmp_path, [GENERATE, None, None, GENERATE], every_s=40 * 86_400.0)
    told = [[one.why for one in event.point.expired] for event in events]
    assert told == [[], ["stale"], [], []]


def test_old_rows_go_and_the_history_stays(tmp_path: Path) -> None:
    watched(tmp_path, [GENERATE] * 6, keep=2)
    kept = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    with History(tmp_path, QUESTION) as history:
        assert len(history.points) == 6
        runs = [point.run for point in history.points]
    assert kept == sorted([runs[0], *runs[-2:]])  # the answer in force, and the newest


def test_a_torn_last_line_is_dropped_and_the_history_goes_on(tmp_path: Path) -> None:
    watched(tmp_path, [GENERATE] * 2)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"at": 17900')
    events, _ = watched(tmp_path, [NET])
    assert [one.why for one in events[0].point.expired] == ["moved"]
    with History(tmp_path, QUESTION) as history:
        assert len(history.points) == 3


def test_the_history_is_bounded(tmp_path: Path) -> None:
    watched(tmp_path, [None] * 5)
    with History(tmp_path, QUESTION, points_max=10) as history:
        for _ in range(40):
            history.append(history.points[-1])
            assert len(history.points) <= 11
    assert (tmp_path / FILE).read_bytes().count(b"\n") <= 12


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"schema":99,"question":{}}\n', "newer tailrace"),
        (b'{"schema":1,"question":{"target":"else"}}\n', "another question"),
        (b"not JSON\n", "no history"),
        (b'{"schema":1,"question":{"target":"http://127.0.0.1:1/"}}\n{"at":"x"}\n', "damaged"),
    ],
)
def test_a_history_that_cannot_be_read_says_so(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(BadHistory, match=said):
        History(tmp_path, QUESTION)


def test_two_watches_do_not_share_a_history(tmp_path: Path) -> None:
    with History(tmp_path, QUESTION), pytest.raises(BadHistory, match="another watch"):
        History(tmp_path, QUESTION)
