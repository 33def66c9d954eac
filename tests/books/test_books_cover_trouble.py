"""Covers when things go wrong: a reader that hangs, a caller who leaves, a model elsewhere without help."""

import contextlib
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bookshops import Shop, serving_books
from covers_here import need_covers
from upstream import Asked, ScriptedUpstream, Step, upstream

need_covers()

from cover_pictures import Words, cover, filed  # noqa: E402
from tailrace.apps.books.cover.desk import ARRIVING_MAX  # noqa: E402

PATH = "/api/books/cover"
JPEG = {"content-type": "image/jpeg"}
ROWS = [
    {"id": "a1", "title": "가나다 바다 이야기", "author": "하주원"},
    {"id": "a2", "title": "나무와 하늘", "author": "나나리"},
]
UNREADABLE = filed(cover(Words("물음표와 느낌표", "아무개"), seed=2))
"""A cover of no book that the shop holds: reading alone does not tell it."""


@contextlib.contextmanager
def small_shop(folder: Path, model: Path, **settings: Any) -> Iterator[Shop]:
    with serving_books(
        folder / "books.db",
        model__source=f"dir:{model}",
        store__catalogue=False,
        threads=2,
        **settings,
    ) as shop:
        assert shop.ask("POST", "/api/books/documents", json={"documents": ROWS}).is_success
        yield shop


def send(shop: Shop, picture: bytes = UNREADABLE, **headers: str) -> Any:
    return shop.ask("POST", PATH, content=picture, headers=JPEG | headers)


# -- a reader that hangs ------------------------------------------------------------------------


def hanging(folder: Path, does: str = "exec sleep 60") -> Path:
    """A tesseract that knows Korean, says who it is, and never reads anything."""
    script = folder / "tesseract.sh"
    script.write_text(
        '#!/bin/sh\n[ "$1" = --list-langs ] && { echo List; echo eng; echo kor; exit 0; }\n'
        f"echo $$ >> {folder}/pids\n{does}\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def until(true: Callable[[], bool], patience_s: float = 20.0) -> None:
    ends = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < ends, "never came true"
        time.sleep(0.01)


def children(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@contextlib.contextmanager
def sending(shop: Shop, sent: bytes = UNREADABLE) -> Iterator[None]:
    """A caller with a cover; leaving the block hangs up."""
    host, port = shop.url.removeprefix("http://").split(":")
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
    with socket.create_connection((host, int(port))) as caller:
        caller.sendall(f"{head}Content-Length: {len(UNREADABLE)}\r\n\r\n".encode() + sent)
        yield


@contextlib.contextmanager
def on_its_way(shop: Shop, folder: Path) -> Iterator[None]:
    """A cover that is being read; leaving the block hangs up."""
    before = len(children(folder))
    with sending(shop):
        until(lambda: len(children(folder)) > before)
        yield


def test_a_caller_who_hangs_up_ends_the_child_that_reads(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    reader = hanging(tmp_path)
    with small_shop(tmp_path, tiny_embedder_folder, cover__tesseract=str(reader)) as shop:
        with on_its_way(shop, tmp_path):
            (pid,) = children(tmp_path)
            assert lives(pid)
        until(lambda: not lives(pid))
        until(lambda: shop.server.covers.lane.running == 0)
        assert shop.metric("books_answered_total", door="cover", outcome="left") == 1


def test_a_service_that_shuts_down_ends_the_child_that_reads(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    with contextlib.ExitStack() as stack:
        with small_shop(
            tmp_path,
            tiny_embedder_folder,
            cover__tesseract=str(hanging(tmp_path)),
            cover__read_s=60.0,
            server__drain_grace_s=0.3,
        ) as shop:
            stack.enter_context(on_its_way(shop, tmp_path))
            (pid,) = children(tmp_path)
            assert lives(pid)
        assert not lives(pid)


def test_a_reader_that_takes_too_long_leaves_it_to_a_person(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    settings = {"cover__tesseract": str(hanging(tmp_path)), "cover__read_s": 2.5}
    with small_shop(tmp_path, tiny_embedder_folder, **settings) as shop:
        body = send(shop).json()
        assert (body["found"], body["degraded"]) == ("needs_input", ["ocr-timeout"])
        assert [lives(pid) for pid in children(tmp_path)] == [False]


def test_a_reader_that_fails_leaves_it_to_a_person(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    broken = hanging(tmp_path, "echo no memory >&2; exit 3")
    with small_shop(tmp_path, tiny_embedder_folder, cover__tesseract=str(broken)) as shop:
        body = send(shop).json()
        assert (body["found"], body["degraded"]) == ("needs_input", ["ocr-failed"])


def test_whoever_finds_no_seat_is_told_when_to_come_back_and_a_deadline_is_kept(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    room = [{"kind": "waiting-room", "seats": 0}]
    settings = {"cover__tesseract": str(hanging(tmp_path)), "cover__door__policies": room}
    with small_shop(tmp_path, tiny_embedder_folder, **settings) as shop:
        with on_its_way(shop, tmp_path):
            full = send(shop)
            assert (full.status_code, full.json()["code"]) == (429, "lane-full")
            assert int(full.headers["retry-after"]) >= 1
            assert shop.search("바다 이야기")["hits"]
        until(lambda: shop.server.covers.lane.running == 0)
        late = send(shop, **{"X-Deadline-Ms": "3000"})
        assert (late.status_code, late.json()["code"]) == (504, "model-timeout")
        until(lambda: not any(lives(pid) for pid in children(tmp_path)))


def test_one_picture_too_many_is_refused_before_any_of_it_is_read(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    """Pictures that come slowly hold what they have sent: so many and no more."""
    room = [{"kind": "waiting-room", "seats": 0}]
    settings = {"cover__door__policies": room}
    with small_shop(tmp_path, tiny_embedder_folder, **settings) as shop:
        with contextlib.ExitStack() as slow:
            for _ in range(ARRIVING_MAX + 1):
                slow.enter_context(sending(shop, UNREADABLE[:-1]))
            until(lambda: shop.server.covers.held == ARRIVING_MAX + 1)
            full = send(shop)
            assert (full.status_code, full.json()["code"]) == (429, "lane-full")
            assert int(full.headers["retry-after"]) >= 1
            assert shop.metric("books_refused_total", door="cover", reason="lane-full") == 1
        until(lambda: shop.server.covers.held == 0)
        assert send(shop).status_code == 200


# -- nothing that reads -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{"cover__ocr": "off"}, {"cover__tesseract": "/nowhere/tesseract"}]
)
def test_where_nothing_reads_covers_the_answer_says_what_to_install(
    tmp_path: Path, tiny_embedder_folder: Path, settings: dict[str, Any]
) -> None:
    with small_shop(tmp_path, tiny_embedder_folder, **settings) as shop:
        answer = send(shop)
        assert (answer.status_code, answer.json()["code"]) == (501, "covers-unavailable")
        assert "tesseract-ocr-kor" in answer.json()["detail"]
        assert shop.search("바다 이야기")["hits"]


def test_language_data_that_is_missing_is_named(tmp_path: Path, tiny_embedder_folder: Path) -> None:
    with small_shop(tmp_path, tiny_embedder_folder, cover__languages="kor+xyz") as shop:
        assert "no data for: xyz" in send(shop).json()["detail"]


# -- a model elsewhere --------------------------------------------------------------------------


def told(title: str, author: str = "", **usage: int) -> Step:
    """The answer of a model that read this."""
    said = {"title": title, "author": author, "publisher": ""}
    message = {"role": "assistant", "content": json.dumps(said, ensure_ascii=False)}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    return Step(body=json.dumps(body).encode())


RIGHT = told("가나다 바다 이야기", "하주원", prompt_tokens=900, completion_tokens=30)


class Eyes:
    """The shop, and the model behind it."""

    def __init__(self, shop: Shop, far: ScriptedUpstream) -> None:
        self.shop, self.far = shop, far
        far.always = RIGHT

    def asked(self, outcome: str) -> float:
        return self.shop.metric("books_cover_vlm_total", outcome=outcome)


@contextlib.contextmanager
def seeing(folder: Path, model: Path, **settings: Any) -> Iterator[Eyes]:
    with (
        upstream() as far,
        small_shop(
            folder, model, cover__vlm__url=far.url, cover__vlm__model="far-eyes", **settings
        ) as shop,
    ):
        yield Eyes(shop, far)


@pytest.fixture
def eyes(tmp_path: Path, tiny_embedder_folder: Path) -> Iterator[Eyes]:
    with seeing(tmp_path, tiny_embedder_folder) as made:
        yield made


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory, tiny_embedder_folder: Path) -> Iterator[Eyes]:
    """A shop that leaves every cover to the model elsewhere."""
    folder = tmp_path_factory.mktemp("blind")
    with seeing(folder, tiny_embedder_folder, cover__ocr="off") as made:
        yield made


def test_what_reading_does_not_tell_a_model_elsewhere_is_asked(eyes: Eyes) -> None:
    answer = send(eyes.shop)
    body = answer.json()
    assert (body["found"], body["degraded"]) == ("vlm", [])
    assert body["books"][0]["id"] == "a1"
    assert {"by": "vlm", "text": "가나다 바다 이야기"} in body["read"]
    assert body["tokens"] == {"calls": 1, "prompt": 900, "completion": 30, "reasoning": 0}
    assert "first-byte;dur=" in answer.headers["server-timing"]
    (asked,) = eyes.far.asked
    assert asked.path.endswith("/chat/completions")
    assert asked.body["model"] == "far-eyes"
    text, picture = asked.body["messages"][0]["content"]
    assert text["type"] == "text"
    assert picture["image_url"]["url"].startswith("data:image/jpeg;base64,/9j/")
    assert asked.body["response_format"]["type"] == "json_schema"
    assert eyes.asked("matched") == 1
    assert eyes.shop.metric("books_covers_total", found="vlm") == 1
    assert eyes.shop.metric("books_cover_vlm_tokens_total", kind="prompt") == 900


def test_a_cover_that_was_read_costs_no_call(eyes: Eyes) -> None:
    body = send(eyes.shop, filed(cover(Words("가나다 바다 이야기", "하주원")))).json()
    assert body["found"] == "ocr"
    assert eyes.far.asked == []


@pytest.mark.parametrize("words", [("물음표와 느낌표", "아무개"), ("", ""), ("바다", "")])
def test_the_models_answer_too_must_be_a_book_of_the_catalogue(
    blind: Eyes, words: tuple[str, str]
) -> None:
    blind.far.always, before = told(*words), blind.asked("no-match")
    body = send(blind.shop).json()
    assert (body["found"], body["books"]) == ("needs_input", [])
    assert body["degraded"] == []
    assert body["tokens"]["calls"] == 1
    assert blind.asked("no-match") == before + 1


def written(content: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}}]}).encode()


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (Step(status=500), "upstream-failed"),
        (Step(reset=True), "upstream-failed"),
        (Step(status=400), "upstream-refused"),
        (Step(body=b"<html>"), "upstream-failed"),
        (Step(body=written("I see a lovely book.")), "upstream-failed"),
        (Step(body=written('{"title": ["a"], "author": 3}')), "upstream-failed"),
        (Step(body=written(None)), "upstream-failed"),
        (Step(body=written("3")), "upstream-failed"),
        (Step(body=b'{"choices": [{"finish_reason": "length"}]}'), "llm-truncated"),
    ],
)
def test_a_model_that_does_not_help_leaves_it_to_a_person_and_that_is_said(
    blind: Eyes, step: Step, code: str
) -> None:
    blind.far.always, before = step, blind.asked("failed")
    answer = send(blind.shop)
    assert answer.status_code == 200
    assert (answer.json()["found"], answer.json()["degraded"]) == ("needs_input", [code])
    assert blind.asked("failed") == before + 1


def test_a_model_that_asks_for_a_pause_is_left_alone_until_it_is_over(eyes: Eyes) -> None:
    eyes.far.always = Step(status=429, headers={"Retry-After": "30"})
    assert send(eyes.shop).json()["degraded"] == ["upstream-busy"]
    assert send(eyes.shop).json()["degraded"] == ["upstream-paused"]
    assert len(eyes.far.asked) == 1


def test_a_slow_model_is_waited_for_so_long_and_no_longer(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    settings = {"cover__ocr": "off", "cover__vlm__total_s": 0.4}
    with seeing(tmp_path, tiny_embedder_folder, **settings) as eyes:
        eyes.far.always = Step(before_head_s=30.0)
        body = send(eyes.shop).json()
        assert body["found"] == "needs_input"
        assert body["degraded"][0] in {"model-timeout", "upstream-timeout"}
        eyes.far.until(lambda: eyes.far.inside == 0)


def test_no_more_calls_are_made_in_a_minute_than_allowed(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    settings = {"cover__ocr": "off", "cover__vlm__per_minute": 1}
    with seeing(tmp_path, tiny_embedder_folder, **settings) as eyes:
        assert send(eyes.shop).json()["found"] == "vlm"
        body = send(eyes.shop).json()
        assert (body["found"], body["degraded"]) == ("needs_input", ["vlm-capped"])
        assert body["tokens"]["calls"] == 0
        assert len(eyes.far.asked) == 1
        assert eyes.asked("capped") == 1


def test_a_caller_who_hangs_up_ends_the_call_upstream(
    blind: Eyes,
) -> None:
    far = blind.far
    far.always, before = Step(before_head_s=30.0), far.hung_up
    with sending(blind.shop):
        far.until(lambda: far.inside == 1)
    far.until(lambda: far.hung_up == before + 1)


def test_where_nothing_reads_here_the_model_elsewhere_is_asked_at_once_and_that_is_said(
    tmp_path: Path, tiny_embedder_folder: Path
) -> None:
    settings = {"cover__tesseract": "/nowhere/tesseract"}
    with seeing(tmp_path, tiny_embedder_folder, **settings) as eyes:
        body = send(eyes.shop).json()
        assert (body["found"], body["degraded"]) == ("vlm", ["ocr-unavailable"])


def test_nothing_of_a_picture_is_kept(
    eyes: Eyes, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = tmp_path / "scratch"
    spot.mkdir()
    monkeypatch.setenv("TMPDIR", str(spot))
    sent: list[Asked] = eyes.far.asked
    with caplog.at_level("DEBUG"):
        send(eyes.shop)
    data = sent[0].body["messages"][0]["content"][1]["image_url"]["url"]
    assert data[40:80] not in caplog.text
    assert os.listdir(spot) == []
