"""OpenAI-compatible chat, streamed or whole: what is sent, and what the answer says of its tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.latency.exchange import Exchange
from tailrace.latency.partition import NS, Figure
from tailrace.latency.targets.chat_answer import ChatAnswer, read_stream, read_whole
from tailrace.latency.targets.port import Ask, Reading
from tailrace.latency.targets.posted import SENT_AS_JSON, digest
from tailrace.latency.targets.providers import Effort, Provider, provider_of, reasoning
from tailrace.latency.thinking import hidden_thinking

STILL_THOUGHT = "asked off, still thought"
REASONING_COUNTS = ("reasoning_tokens", "thinking_tokens")
DETAILS = ("completion_tokens_details", "output_tokens_details")
KEPT = {"model": "model", "system_fingerprint": "fingerprint", "provider": "provider"}


@dataclass(frozen=True)
class Chat:
    """One prompt per request, in turn."""

    url: str
    """Ends in the version (".../v1"); /chat/completions is added."""
    prompts: Sequence[str]
    model: str
    stream: bool = True
    output_max: int = 64
    """The most tokens of an answer."""
    effort: Effort | None = None
    """How much reasoning to ask for; None says nothing."""
    provider: Provider | None = None
    """By the URL where not given."""
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Laid over the body."""

    @property
    def name(self) -> str:
        """Kind and URL."""
        return f"openai-chat {self._endpoint}"

    @property
    def _endpoint(self) -> str:
        return self.url.rstrip("/") + "/chat/completions"

    def ask(self, index: int) -> Ask:
        """The prompt number `index`, wrapping round; raises CannotAsk."""
        provider = self.provider or provider_of(self.url)
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": self.prompts[index % len(self.prompts)]}],
            provider.cap: self.output_max,
        }
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if self.effort is not None:
            body |= reasoning(provider, self.effort)
        content = orjson.dumps({**body, **self.extra})
        detail: dict[str, Any] = {"kind": "openai-chat", "streamed": self.stream}
        if self.effort is not None:
            detail["reasoning_asked"] = self.effort
        accept = {"accept": "text/event-stream"} if self.stream else {}
        headers = {**SENT_AS_JSON, **accept, **self.headers}
        return Ask("POST", self._endpoint, headers, content, digest(content), detail)

    def read(self, exchange: Exchange) -> Reading:
        """Tokens, thoughts and counts; a server that does not stream though asked to is read whole."""
        streamed = "event-stream" in exchange.headers.get("content-type", "")
        answer = read_stream(exchange.chunks) if streamed else read_whole(exchange.body)
        detail = self._detail(answer, streamed)
        inside, share = self._thoughts(answer, detail, exchange, streamed)
        return Reading(
            problem=answer.problem,
            truncated=answer.truncated,
            marks=answer.marks if streamed else Reading().marks,
            inside=inside,
            thought_share=share,
            detail=detail,
            answer=answer.rest,
        )

    def _detail(self, answer: ChatAnswer, streamed: bool) -> dict[str, Any]:
        detail: dict[str, Any] = counts(answer.usage)
        detail |= {
            name: answer.rest[k] for k, name in KEPT.items() if isinstance(answer.rest.get(k), str)
        }
        if answer.finished is not None:
            detail["finish_reason"] = answer.finished
        thoughts = sum(not piece.visible for piece in answer.said)
        if thoughts:
            detail["reasoning_chunks"] = thoughts
        if self.effort == "off" and (thoughts or detail.get("reasoning_tokens")):
            detail["reasoning_flag"] = STILL_THOUGHT
        if streamed:
            detail |= _pace(answer, detail.get("output_tokens"))
            if not self.stream:
                detail["streamed"] = True
        elif self.stream:
            detail["streamed"] = False
        return detail

    def _thoughts(
        self, answer: ChatAnswer, detail: Mapping[str, Any], exchange: Exchange, streamed: bool
    ) -> tuple[dict[str, Figure], float | None]:
        """Figures of hidden thoughts in a stream; of a whole answer the share of tokens that are thoughts."""
        tokens, out = detail.get("reasoning_tokens", 0), detail.get("output_tokens", 0)
        if not tokens or not out:
            return {}, None
        if not streamed:
            return {}, min(1.0, tokens / out)
        first, sent = answer.marks.first_token, exchange.stamps.sent
        if detail.get("reasoning_chunks") or first is None or sent is None:
            return {}, None
        moments = [piece.at_ns for piece in answer.said]
        figure = hidden_thinking(tokens, moments, out - tokens, first - sent)
        return ({} if figure is None else {"think": figure}), None


def counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Token counts out of a usage object, by the names of a row's detail."""
    found: dict[str, Any] = {
        "input_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "output_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
    }
    inner = [usage, *(usage[name] for name in DETAILS if isinstance(usage.get(name), Mapping))]
    for place in inner:
        for name in REASONING_COUNTS:
            found["reasoning_tokens"] = found.get("reasoning_tokens") or place.get(name)
    prompt = usage.get("prompt_tokens_details")
    if isinstance(prompt, Mapping):
        found["cached_tokens"] = prompt.get("cached_tokens")
    return {name: value for name, value in found.items() if isinstance(value, int)}


def _pace(answer: ChatAnswer, tokens: int | None) -> dict[str, Any]:
    """Per piece and per token: a piece may hold several tokens, and the first one's came before it."""
    pieces = len(answer.said)
    pace: dict[str, Any] = {"pieces": pieces}
    if pieces < 2:
        return pace
    span = (answer.said[-1].at_ns - answer.said[0].at_ns) * NS
    pace["inter_piece_ms"] = span / (pieces - 1)
    characters = sum(len(piece.text) for piece in answer.said)
    if tokens and characters:
        after_first = tokens * (1 - len(answer.said[0].text) / characters)
        if after_first >= 1:
            pace["inter_token_ms"] = span / after_first
    return pace
