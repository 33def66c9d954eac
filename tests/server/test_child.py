"""A model in a process of its own: what its keeper does when it will not live."""

import asyncio
import sys
from collections.abc import Sequence

import pytest

from boxes import HERE, SOURCE
from tailrace.core.errors import ModelError
from tailrace.core.events import ChildRestarted, Event, Events
from tailrace.models.child import ChildModel, ModelRestarting

CHILD = [sys.executable, str(HERE / "naive_child.py")]


def watched(command: Sequence[str], limit_bytes: int = 0) -> tuple[ChildModel, list[Event]]:
    events, seen = Events(), []
    events.subscribe(seen.append)
    return ChildModel("naive", command, limit_bytes=limit_bytes, events=events), seen


@pytest.fixture(autouse=True)
def _of_this_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))


@pytest.mark.parametrize(
    ("command", "limit_bytes"),
    [
        ([sys.executable, "-c", "pass"], 0),
        (["/no/such/command"], 0),
        (
            [
                sys.executable,
                "-c",
                (
                    "import sys,socket; "
                    "s = socket.socket(fileno=int(sys.argv[2])); s.sendall(b'\\0\\0\\0\\5hello'); s.recv(1)"
                ),
            ],
            0,
        ),
        (CHILD, 1 << 20),
    ],
    ids=["ends at once", "is not there", "speaks nonsense", "needs more than its limit"],
)
def test_a_child_that_never_serves_is_tried_again_ever_more_rarely_and_never_given_up(
    command: list[str], limit_bytes: int
) -> None:
    async def main() -> tuple[int, int]:
        child, seen = watched(command, limit_bytes)
        await child.start()
        for _ in range(600):
            await asyncio.sleep(0.05)
            if child.restarts >= 2:
                break
        early = child.restarts
        await asyncio.sleep(1.5)
        with pytest.raises(ModelError):
            await child.ask({"text": "x", "labels": ["a"]})
        later = child.restarts
        await child.stop()
        assert len([e for e in seen if isinstance(e, ChildRestarted)]) == later
        return early, later

    early, later = asyncio.run(main())
    assert early >= 2, "it was tried again"
    assert later - early <= 3, "and not as fast as the machine can"


def test_a_child_killed_by_a_crowd_is_back_without_a_pause() -> None:
    async def main() -> list[float]:
        child, _ = watched(CHILD, 85 << 20)
        await child.start()
        loop, pauses = asyncio.get_running_loop(), []
        for _ in range(3):
            await asyncio.wait_for(child.wait_ready(), 20)
            asks = (child.ask({"text": "x", "labels": ["a"]}) for _ in range(14))
            await asyncio.gather(*asks, return_exceptions=True)
            began = loop.time()
            await asyncio.wait_for(child.wait_ready(), 20)
            pauses.append(loop.time() - began)
        assert child.restarts == 3
        await child.stop()
        return pauses

    pauses = asyncio.run(main())
    assert pauses[-1] <= 5 * max(pauses[0], 0.2), "the third death costs no more than the first"


def test_a_child_that_is_not_there_yet_says_so_and_stopping_it_leaves_nobody_waiting() -> None:
    async def main() -> list[BaseException | object]:
        child, _ = watched(CHILD)
        with pytest.raises(ModelRestarting):
            await child.ask({"text": "x", "labels": ["a"]})
        await child.start()
        await asyncio.wait_for(child.wait_ready(), 20)
        asks = [asyncio.create_task(child.ask({"text": "x", "labels": ["a"]})) for _ in range(3)]
        await asyncio.sleep(0.05)
        await child.stop()
        assert child.running == 0
        return await asyncio.gather(*asks, return_exceptions=True)

    ends = asyncio.run(main())
    assert [type(end).__name__ for end in ends] == ["ModelDied"] * 3
