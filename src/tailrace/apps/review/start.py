"""From settings to a box that is ready: topics, model, warm-up."""

import time
from collections.abc import Callable

from tailrace.apps.review.box import ReviewBox
from tailrace.apps.review.settings import BoxSettings
from tailrace.apps.review.topics import Topics, load_topics
from tailrace.core.clock import MonotonicClock
from tailrace.core.estimate import ServiceTime
from tailrace.models.cores import usable_cores
from tailrace.models.open import open_cross_encoder
from tailrace.models.port import CrossEncoder
from tailrace.models.threads import InferenceThreads

WARM_UP = (
    "친절해요",
    "점심시간에 갔더니 줄이 길어서 삼십 분을 기다렸는데 음식은 금방 나왔어요",
    "가격이 좀 비싸긴 한데 직원분이 친절했어요",
    "주차장이 좁고 자리도 불편했지만 국물이 깊고 면발이 쫄깃해서 아이들이 잘 먹었고 다음에 또 올 것 같아요",
)
"""Texts of several lengths: the first runs touch memory for the first time, the later ones tell the time."""


class _Unwatched:
    """A `Run` outside any lane."""

    def mark(self, part: str) -> None:
        """Nobody reads the moments of a warm-up."""

    def wanted(self, index: int) -> bool:  # noqa: ARG002 - the port's shape
        """Everything is."""
        return True


def warm_up(model: CrossEncoder, threads: InferenceThreads, topics: Topics) -> ServiceTime:
    """Run the model a few times; returns how long a run takes here.

    Raises:
        Exception: what the model raises: a box whose model cannot answer does not start.

    """
    service = ServiceTime()
    for round_number in range(2):
        for text in WARM_UP:
            began = time.monotonic()
            (answer,) = threads.spread(
                lambda sample: model.score([sample], topics.labels, _Unwatched())[0], [text]
            )
            if isinstance(answer, Exception):
                raise answer
            if round_number:
                service.learn(model.cost(text, topics.labels), time.monotonic() - began)
    return service


def open_box(settings: BoxSettings, progress: Callable[[str, float], None]) -> ReviewBox:
    """A box with its model loaded and warm; nothing listens yet.

    Raises:
        BadConfiguration: the topics cannot be used.
        TailraceError: the model is not there or does not answer.

    """
    topics = load_topics(settings.review.topics)
    threads = InferenceThreads(settings.model.threads or usable_cores())
    model = open_cross_encoder(
        settings.model.source,
        threads=threads,
        progress=progress,
        cache_dir=settings.model.cache_dir,
    )
    progress("warming up", 0.0)
    service = warm_up(model, threads, topics)
    progress("warming up", 1.0)
    return ReviewBox(settings, model, threads, topics, clock=MonotonicClock(), service=service)
