"""How to ask language models not to think, or to think less, and where they tell that they did.

Every provider has its own switch, and a switch is no proof: what was asked is to be held against the tokens
and the pieces that came. Knows no provider's address.
"""

from collections.abc import Mapping
from typing import Any, Literal

Asked = Literal["default", "off", "low", "high"]
Provider = Literal[
    "openai",
    "anthropic",
    "gemini",
    "groq",
    "cerebras",
    "fireworks",
    "mistral",
    "deepseek",
    "qwen",
    "vllm",
    "ollama",
]


def _effort(off: str) -> dict[str, dict[str, Any]]:
    return {
        "off": {"reasoning_effort": off},
        "low": {"reasoning_effort": "low"},
        "high": {"reasoning_effort": "high"},
    }


def _thinking(off: dict[str, Any], on: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"off": off, "low": on, "high": on}


SWITCHES: Mapping[Provider, Mapping[str, Mapping[str, Any]]] = {
    "openai": _effort("none"),
    "anthropic": {
        "off": {"thinking": {"type": "disabled"}},
        "low": {"output_config": {"effort": "low"}},
        "high": {"output_config": {"effort": "high"}},
    },
    "gemini": _effort("none"),
    "groq": _effort("none"),
    "cerebras": _effort("none"),
    "fireworks": _effort("none"),
    "mistral": _effort("none"),
    "deepseek": _thinking(
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled"}},
    ),
    "qwen": _thinking({"enable_thinking": False}, {"enable_thinking": True}),
    "vllm": _thinking(
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"chat_template_kwargs": {"enable_thinking": True}},
    ),
    "ollama": _thinking({"think": False}, {"think": True}),
}
"""What to add to the body of a chat request, by provider and what is asked."""

CHANNELS = ("reasoning", "reasoning_content", "thinking")
"""The fields of a streamed delta in which thoughts come, by provider and age."""


def switch(provider: Provider, asked: Asked) -> Mapping[str, Any]:
    """What to add to the body; nothing for the provider's default."""
    return {} if asked == "default" else SWITCHES[provider][asked]


def thought(delta: Mapping[str, Any]) -> str:
    """The thoughts in one streamed delta."""
    return "".join(text for name in CHANNELS if isinstance(text := delta.get(name), str))


def reasoning_tokens(usage: Mapping[str, Any]) -> int | None:
    """The tokens spent on thinking, of which the visible ones are not part; None where it is not told."""
    for place in ("completion_tokens_details", "output_tokens_details"):
        details = usage.get(place)
        if isinstance(details, Mapping):
            for name in ("reasoning_tokens", "thinking_tokens"):
                if isinstance(details.get(name), int):
                    return int(details[name])
    told = usage.get("reasoning_tokens")
    return int(told) if isinstance(told, int) else None
