"""Errors to problem details: one table for every error class of the house."""

import importlib
import pkgutil

import orjson
import pytest

import tailrace
from tailrace.core.errors import LaneFull, TailraceError
from tailrace.serve.problems import INTERNAL, STATUS, problem_answer
from tailrace.wire.problem import TYPE_PREFIX

NOT_ANSWERED = {
    "internal": "the base class",
    "rejected": "a base class",
    "ticket-error": "a base class",
    "abandoned": "nobody is there to read it",
    "port-taken": "said on the command line, before anything listens",
}
"""Codes that no answer carries, and why."""


def error_classes() -> list[type[TailraceError]]:
    for module in pkgutil.walk_packages(tailrace.__path__, "tailrace."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, todo = [], [TailraceError]
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if kind.__module__.startswith("tailrace."):
            found.append(kind)
    return found


def test_every_error_class_has_a_row_in_the_table() -> None:
    kinds = error_classes()
    assert len(kinds) > 20
    missing = {
        f"{kind.__module__}.{kind.__name__}: {kind.code}"
        for kind in kinds
        if kind.code not in STATUS and kind.code not in NOT_ANSWERED
    }
    assert missing == set()


def test_every_row_belongs_to_an_error_class() -> None:
    assert set(STATUS) - {kind.code for kind in error_classes()} == set()


def test_every_error_class_has_a_docstring_for_its_default_message() -> None:
    for kind in error_classes():
        assert kind.__doc__, kind
        assert "\n" not in str(kind())
        assert str(kind()).endswith(".")


def test_statuses_are_errors_and_titles_are_words() -> None:
    for code, (status, title) in {**STATUS, "internal": INTERNAL}.items():
        assert 400 <= status <= 599, code
        assert title[0].isupper(), code


def test_a_problem_has_the_members_of_the_standard_and_the_code() -> None:
    made = problem_answer(LaneFull(), door="limited", back_s=(3.0, 2.345))
    body = orjson.loads(made.body)
    assert body["type"] == TYPE_PREFIX + "lane-full"
    assert (body["status"], made.status) == (429, 429)
    assert {"title", "detail", "code", "door"} <= set(body)
    assert made.headers["Content-Type"] == "application/problem+json"
    assert made.headers["Retry-After"] == "3"
    assert made.headers["retry-after-ms"] == "2345"
    assert body["retry_after_s"] == 3


def test_an_error_without_a_row_says_nothing_of_the_inside() -> None:
    class Secret(TailraceError):
        """The password is swordfish."""

        code = "secret"

    made = problem_answer(Secret())
    assert made.status == 500
    assert b"swordfish" not in made.body


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_every_error_class_can_be_made_without_words_and_answered(
    kind: type[TailraceError],
) -> None:
    body = orjson.loads(problem_answer(kind()).body)
    assert body["detail"]
    assert body["status"] >= 400
