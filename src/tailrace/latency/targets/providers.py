"""Who serves chats, and how each wants its key, its output cap and its reasoning switch: a table.

A switch is only asked for here; whether it was heeded is read from the answer.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

Effort = Literal["off", "minimal", "low", "medium", "high"]
Switch = Literal["effort", "thinking", "enable_thinking", "template", "reasoning", "none"]


class CannotAsk(ValueError):
    """The provider has no such switch: what it has, in one sentence."""


@dataclass(frozen=True)
class Provider:
    """One provider of OpenAI-compatible chats."""

    name: str
    hosts: tuple[str, ...] = ()
    """Ends of host names."""
    key_env: str | None = None
    """Where its key is usually kept."""
    key_header: str = "authorization"
    switch: Switch = "effort"
    cap: str = "max_tokens"
    """The field that bounds the output."""


PROVIDERS = (
    Provider("openai", ("api.openai.com",), "OPENAI_API_KEY", cap="max_completion_tokens"),
    Provider(
        "azure",
        ("openai.azure.com", "services.ai.azure.com"),
        "AZURE_OPENAI_API_KEY",
        key_header="api-key",
        cap="max_completion_tokens",
    ),
    Provider("groq", ("api.groq.com",), "GROQ_API_KEY", cap="max_completion_tokens"),
    Provider("cerebras", ("api.cerebras.ai",), "CEREBRAS_API_KEY", cap="max_completion_tokens"),
    Provider("fireworks", ("api.fireworks.ai",), "FIREWORKS_API_KEY"),
    Provider(
        "together", ("api.together.xyz", "api.together.ai"), "TOGETHER_API_KEY", switch="reasoning"
    ),
    Provider("mistral", ("api.mistral.ai",), "MISTRAL_API_KEY"),
    Provider("deepseek", ("api.deepseek.com",), "DEEPSEEK_API_KEY", switch="thinking"),
    Provider("glm", ("api.z.ai", "open.bigmodel.cn"), "ZAI_API_KEY", switch="thinking"),
    Provider("kimi", ("api.moonshot.ai", "api.moonshot.cn"), "MOONSHOT_API_KEY", switch="thinking"),
    Provider("qwen", ("aliyuncs.com",), "DASHSCOPE_API_KEY", switch="enable_thinking"),
    Provider("gemini", ("generativelanguage.googleapis.com",), "GEMINI_API_KEY"),
    Provider("anthropic", ("api.anthropic.com",), "ANTHROPIC_API_KEY", switch="thinking"),
    Provider("openrouter", ("openrouter.ai",), "OPENROUTER_API_KEY", switch="reasoning"),
    Provider("deepinfra", ("api.deepinfra.com",), "DEEPINFRA_API_KEY"),
    Provider("ollama", ()),
    Provider("llama.cpp", (), switch="template"),
    Provider("sglang", (), switch="template"),
    Provider("vllm", (), "VLLM_API_KEY", switch="template"),
)
OWN = PROVIDERS[-1]
"""What an unknown host is taken for: somebody's own vLLM, or what speaks like it."""


def provider_of(url: str, name: str | None = None) -> Provider:
    """The provider by `name`, else by the host of `url`; raises CannotAsk for an unknown name."""
    if name is not None:
        for provider in PROVIDERS:
            if provider.name == name:
                return provider
        raise CannotAsk(f"no provider {name}; known are {', '.join(p.name for p in PROVIDERS)}")
    host = urlsplit(url).hostname or ""
    for provider in PROVIDERS:
        if any(host == end or host.endswith("." + end) for end in provider.hosts):
            return provider
    return OWN


def key_headers(provider: Provider, key_env: str | None = None) -> dict[str, str]:
    """The header with the key out of the environment, which is its only place; empty where there is none.

    Raises:
        CannotAsk: `key_env` was named, and is not set.

    """
    name = key_env or provider.key_env
    value = os.environ.get(name, "").strip() if name else ""
    if not value:
        if key_env:
            raise CannotAsk(f"the environment has no {key_env}")
        return {}
    bearer = provider.key_header == "authorization"
    return {provider.key_header: f"Bearer {value}" if bearer else value}


def reasoning(provider: Provider, effort: Effort) -> Mapping[str, Any]:
    """What to put into the body to ask for so much reasoning; raises CannotAsk."""
    if effort not in get_args(Effort):
        raise CannotAsk(f"reasoning is one of {', '.join(get_args(Effort))}, not {effort}")
    off = effort == "off"
    if provider.switch == "effort":
        return {"reasoning_effort": "none" if off else effort}
    if provider.switch == "reasoning":
        return {"reasoning": {"enabled": False} if off else {"effort": effort}}
    if provider.switch == "template" and not off:
        return {"reasoning_effort": effort}
    if not off:
        raise CannotAsk(f"{provider.name} knows reasoning off or as the model likes, not {effort}")
    if provider.switch == "thinking":
        return {"thinking": {"type": "disabled"}}
    if provider.switch == "enable_thinking":
        return {"enable_thinking": False}
    return {"chat_template_kwargs": {"enable_thinking": False}}
