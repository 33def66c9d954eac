"""Thoughts that nobody sees: how long they took, by their tokens, and what was asked of whom."""

import pytest

from tailrace.latency.partition import Figure
from tailrace.latency.targets.providers import (
    PROVIDERS,
    CannotAsk,
    key_headers,
    provider_of,
    reasoning,
)
from tailrace.latency.thinking import GAPS_MIN, hidden_thinking, split_generate

MS = 1_000_000


def test_a_hidden_token_costs_what_a_visible_one_does() -> None:
    moments = [1000 * MS + i * 20 * MS for i in range(30)]
    figure = hidden_thinking(100, moments, 30, 5000 * MS)
    assert figure is not None
    assert figure.source == "estimated"
    assert figure.ns == pytest.approx(2000 * MS)
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low <= figure.ns <= figure.high


def test_pieces_of_several_tokens_are_taken_apart() -> None:
    moments = [i * 60 * MS for i in range(20)]
    figure = hidden_thinking(50, moments, 60, 5000 * MS)
    assert figure is not None
    assert figure.ns == pytest.approx(1000 * MS)


def test_it_takes_no_longer_than_the_wait() -> None:
    figure = hidden_thinking(1000, [i * 20 * MS for i in range(30)], 30, 500 * MS)
    assert figure is not None
    assert figure.ns == 500 * MS


def test_too_few_visible_pieces_say_nothing() -> None:
    assert hidden_thinking(100, [i * MS for i in range(GAPS_MIN)], 8, 10**9) is None
    assert hidden_thinking(0, [i * MS for i in range(30)], 30, 10**9) is None


def test_a_declared_generation_is_split_by_tokens() -> None:
    parts = split_generate(
        {"generate": Figure(1000, "declared"), "queue": Figure(7, "declared")}, 0.75
    )
    assert (parts["think"].ns, parts["generate"].ns) == (750, 250)
    assert parts["think"].source == parts["generate"].source == "estimated"
    assert parts["queue"] == Figure(7, "declared")
    assert split_generate({"queue": Figure(7, "declared")}, 0.75).keys() == {"queue"}


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("openai", {"reasoning_effort": "none"}),
        ("groq", {"reasoning_effort": "none"}),
        ("cerebras", {"reasoning_effort": "none"}),
        ("fireworks", {"reasoning_effort": "none"}),
        ("mistral", {"reasoning_effort": "none"}),
        ("gemini", {"reasoning_effort": "none"}),
        ("together", {"reasoning": {"enabled": False}}),
        ("openrouter", {"reasoning": {"enabled": False}}),
        ("deepseek", {"thinking": {"type": "disabled"}}),
        ("glm", {"thinking": {"type": "disabled"}}),
        ("kimi", {"thinking": {"type": "disabled"}}),
        ("qwen", {"enable_thinking": False}),
        ("vllm", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("sglang", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_how_each_provider_is_asked_not_to_think(name: str, body: dict[str, object]) -> None:
    assert reasoning(provider_of("http://h/v1", name), "off") == body


def test_a_switch_that_is_none_is_said_beforehand() -> None:
    with pytest.raises(CannotAsk, match="deepseek"):
        reasoning(provider_of("https://api.deepseek.com/v1"), "high")
    with pytest.raises(CannotAsk, match="off, minimal"):
        reasoning(provider_of("https://api.openai.com/v1"), "loud")  # type: ignore[arg-type]
    with pytest.raises(CannotAsk, match="no provider"):
        provider_of("http://h/v1", "nobody")


def test_a_provider_is_known_by_its_host() -> None:
    assert provider_of("https://api.groq.com/openai/v1").name == "groq"
    assert provider_of("https://me.openai.azure.com/openai/v1").name == "azure"
    assert provider_of("https://notapi.groq.com.example/v1").name == "vllm"
    assert provider_of("http://127.0.0.1:8000/v1").name == "vllm"
    assert len({provider.name for provider in PROVIDERS}) == len(PROVIDERS)


def test_a_key_comes_out_of_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-1")
    monkeypatch.setenv("MINE", "k-2")
    monkeypatch.delenv("NOT_SET", raising=False)
    groq = provider_of("https://api.groq.com/openai/v1")
    assert key_headers(groq) == {"authorization": "Bearer gsk-1"}
    assert key_headers(groq, "MINE") == {"authorization": "Bearer k-2"}
    azure = provider_of("https://me.openai.azure.com/openai/v1")
    assert key_headers(azure, "MINE") == {"api-key": "k-2"}
    assert key_headers(provider_of("http://127.0.0.1/v1", "ollama")) == {}
    with pytest.raises(CannotAsk, match="NOT_SET"):
        key_headers(groq, "NOT_SET")
