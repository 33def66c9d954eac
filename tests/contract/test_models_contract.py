"""What every CrossEncoder and every Embedder promises, looped over the fakes and the real thing."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tailrace.models.errors import Abandoned, BadOutput, UnknownPrompt
from tailrace.models.fake import FakeCrossEncoder, FakeEmbedder
from tiny import NAN_SIGN, TOO_LONG, Watched, good

LABELS = ["가나다", "마", "good food and more", "주"]
TEXTS = ["하나", "a longer text about a cafe", "b", "가나다라마바사 아자차카", "c d e f g h"]
MARKS = ["tokenize", "infer", "post"]

Ask = Callable[..., list[Any]]


RUNTIMES = ["fake", "tiny", "process", "openvino"]


@pytest.fixture(params=[*RUNTIMES, pytest.param("real", marks=pytest.mark.model)])
def cross_encoder(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeCrossEncoder()
    return request.getfixturevalue(f"{request.param}_cross_encoder")


@pytest.fixture(params=[*RUNTIMES, pytest.param("real", marks=pytest.mark.model)])
def embedder(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeEmbedder()
    return request.getfixturevalue(f"{request.param}_embedder")


@pytest.fixture(
    params=[
        (kind, which) if which != "real" else pytest.param((kind, which), marks=pytest.mark.model)
        for kind in ("cross_encoder", "embedder")
        for which in (*RUNTIMES, "real")
    ],
    ids="-".join,
)
def ask(request: pytest.FixtureRequest) -> Ask:
    """Either kind of model, asked the same way: texts and a run in, answers out."""
    kind, which = request.param
    if kind == "cross_encoder":
        scorer = (
            FakeCrossEncoder() if which == "fake" else request.getfixturevalue(f"{which}_{kind}")
        )
        return lambda texts, run: scorer.score(texts, LABELS, run)
    model = FakeEmbedder() if which == "fake" else request.getfixturevalue(f"{which}_{kind}")
    return lambda texts, run: list(model.embed(texts, run))


def test_every_text_gets_its_answer_in_order(ask: Ask) -> None:
    answers = good(ask(TEXTS, Watched()))
    assert len(answers) == len(TEXTS)
    for text, answer in zip(TEXTS, answers, strict=True):
        alone = good(ask([text], Watched()))[0]
        np.testing.assert_allclose(answer, alone, atol=2e-6)


def test_answers_of_different_texts_differ(ask: Ask) -> None:
    answers = good(ask(TEXTS, Watched()))
    for other in answers[1:]:
        assert np.abs(answers[0] - other).max() > 1e-4


def test_an_empty_batch_has_no_answers_and_still_makes_its_marks(ask: Ask) -> None:
    run = Watched()
    assert ask([], run) == []
    assert run.marks == MARKS


def test_the_three_parts_are_marked_once_and_in_order(ask: Ask) -> None:
    run = Watched()
    ask(TEXTS, run)
    assert run.marks == MARKS


def test_an_item_nobody_wants_is_abandoned_and_its_neighbours_are_answered(ask: Ask) -> None:
    run = Watched(unwanted=frozenset({1, 3}))
    answers = ask(TEXTS, run)
    assert [isinstance(answer, Abandoned) for answer in answers] == [0, 1, 0, 1, 0]
    assert set(run.asked) == set(range(len(TEXTS)))
    good([answers[0], answers[2], answers[4]])


def test_probabilities_are_one_per_label_between_0_and_1(cross_encoder: Any) -> None:
    for answer in good(cross_encoder.score(TEXTS, LABELS, Watched())):
        assert answer.shape == (len(LABELS),)
        assert answer.dtype == np.float32
        assert ((answer >= 0) & (answer <= 1)).all()


def test_a_label_scores_the_same_whatever_labels_stand_beside_it(cross_encoder: Any) -> None:
    together = good(cross_encoder.score(TEXTS[:1], LABELS, Watched()))[0]
    alone = [good(cross_encoder.score(TEXTS[:1], [label], Watched()))[0][0] for label in LABELS]
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_without_labels_a_text_gets_an_empty_array(cross_encoder: Any) -> None:
    assert [answer.shape for answer in good(cross_encoder.score(["a"], [], Watched()))] == [(0,)]


def test_cost_grows_with_the_text_and_with_the_labels(cross_encoder: Any) -> None:
    short = cross_encoder.cost("a", LABELS)
    assert 0 < short < cross_encoder.cost("a b c d e f g h i j", LABELS)
    assert cross_encoder.cost("a", LABELS[:1]) < short


def test_vectors_have_unit_length(embedder: Any) -> None:
    for vector in good(embedder.embed(TEXTS, Watched())):
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_a_prompt_changes_the_vector_and_an_unknown_one_is_refused(embedder: Any) -> None:
    plain, query, passage = (
        good(embedder.embed(["가나"], Watched(), prompt=prompt))[0]
        for prompt in (None, "query", "passage")
    )
    assert np.abs(plain - query).max() > 1e-3
    assert np.abs(query - passage).max() > 1e-3
    with pytest.raises(UnknownPrompt, match="query"):
        embedder.embed(["가나"], Watched(), prompt="poem")


def broken(answers: Sequence[Any]) -> list[bool]:
    return [isinstance(answer, Exception) for answer in answers]


@pytest.mark.parametrize("model", ["tiny_cross_encoder", "tiny_embedder"])
class TestOneBadItem:
    """Real failures of a real runtime; the neighbours share sub-batches with the bad item."""

    @pytest.fixture
    def ask_tiny(self, model: str, request: pytest.FixtureRequest) -> Ask:
        opened = request.getfixturevalue(model)
        if model == "tiny_cross_encoder":
            return lambda texts: opened.score(texts, LABELS, Watched())
        return lambda texts: opened.embed(texts, Watched())

    def neighbours_are_right(self, ask_tiny: Ask, answers: Sequence[Any]) -> None:
        expected = good(ask_tiny(["abc", "가나"]))
        np.testing.assert_allclose(answers[0], expected[0], atol=2e-6)
        np.testing.assert_allclose(answers[2], expected[1], atol=2e-6)

    def test_that_gives_no_finite_number_is_a_bad_output(self, ask_tiny: Ask) -> None:
        answers = ask_tiny(["abc", f"a{NAN_SIGN}b", "가나"])
        assert broken(answers) == [False, True, False]
        assert isinstance(answers[1], BadOutput)
        self.neighbours_are_right(ask_tiny, answers)

    def test_that_kills_its_run_is_found_and_the_others_are_run_again(self, ask_tiny: Ask) -> None:
        answers = ask_tiny(["abc", TOO_LONG, "가나"])
        assert broken(answers) == [False, True, False]
        self.neighbours_are_right(ask_tiny, answers)

    def test_that_is_no_text_is_unreadable(self, ask_tiny: Ask) -> None:
        answers = ask_tiny(["abc", "a\ud800", "가나"])
        assert broken(answers) == [False, True, False]
        assert answers[1].code == "invalid-input"
        self.neighbours_are_right(ask_tiny, answers)


def test_the_fakes_fail_as_they_are_told() -> None:
    failure = ValueError("told to")
    fake = FakeCrossEncoder(failing={"bad": failure}, poison={"poison"})
    answers = fake.score(["good", "bad"], LABELS, Watched())
    assert answers[1] is failure
    assert isinstance(answers[0], np.ndarray)
    with pytest.raises(Exception, match="poison"):
        fake.score(["good", "poison"], LABELS, Watched())
    fake.script.crash_next()
    with pytest.raises(Exception, match="crash"):
        fake.score(["good"], LABELS, Watched())
    good(fake.score(["good"], LABELS, Watched()))
    assert [len(run) for run in fake.script.runs] == [2, 2, 1, 1]


def test_a_fake_takes_the_scripted_time() -> None:
    waited: list[float] = []
    fake = FakeEmbedder(seconds=[0.5, 0.25], wait=waited.append)
    for _ in range(3):
        fake.embed(["a", "b"], Watched())
    assert waited == [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]
