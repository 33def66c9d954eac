"""From a scenario's tables to something that can be asked: texts, target, key.

Keys come from the environment, go into headers, and are kept nowhere.
"""

import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

from tailrace.bench.errors import BadScenario
from tailrace.bench.reviews import EXAMPLES
from tailrace.bench.scenario import AskTable, Case, TargetTable
from tailrace.latency.address import BadAddress, address
from tailrace.latency.exchange import Exchange
from tailrace.latency.targets.chat import Chat
from tailrace.latency.targets.doors import door
from tailrace.latency.targets.embeddings import openai_embeddings, tei_embed
from tailrace.latency.targets.plain import PlainUrl
from tailrace.latency.targets.port import Ask, Reading, Target
from tailrace.latency.targets.posted import digest
from tailrace.latency.targets.reranks import Flavour, rerank

QUESTIONS = (
    "한 문장으로 답해 줘: 비 오는 날 읽기 좋은 책은?",
    "열 살 아이에게 별이 왜 빛나는지 설명해 줘.",
    "외로울 때 위로가 되는 소설을 하나 골라 이유를 말해 줘.",
    "조선 시대를 다룬 추리 소설의 줄거리를 두 문장으로 지어 줘.",
    "커피가 식는 속도를 바꾸는 것 세 가지는?",
    "Name three books about the sea and say why in one sentence each.",
    "What is a queue, and why do people dislike it? Two sentences.",
    "Write one sentence a bookseller would say to a hurried customer.",
)
RERANKS: dict[str, Flavour] = {
    "cohere-rerank": "cohere",
    "jina-rerank": "jina",
    "tei-rerank": "tei",
}


def target_of(case: Case, salt: str = "", environ: Mapping[str, str] | None = None) -> Target:
    """The target of a case; `salt` is what makes texts fresh; raises BadScenario."""
    table, texts = case.target, texts_of(case.ask)
    if case.ask.fresh and salt:
        texts = tuple(f"{text} [{salt}]" for text in texts)
    headers = _key(table, os.environ if environ is None else environ)
    try:
        address(table.url.replace("{text}", "x"))
    except BadAddress as bad:
        raise BadScenario(str(bad)) from None
    protocol, url, model = table.protocol, table.url, table.model
    if protocol == "openai-chat":
        return Chat(
            url,
            texts,
            model,
            stream=table.stream,
            output_max=table.output_max,
            effort=table.reasoning,
            headers=headers,
        )
    if protocol == "openai-embeddings":
        return openai_embeddings(url, texts, model=model, batch=table.batch, headers=headers)
    if protocol == "tei":
        return tei_embed(url, texts, batch=table.batch, headers=headers)
    if protocol == "door":
        return door(url, table.door, texts, headers)
    if protocol == "plain":
        return (
            TemplatedUrl(url, texts, headers) if "{text}" in url else PlainUrl(url, "GET", headers)
        )
    flavour = RERANKS[protocol]
    query, batch = case.ask.query, table.batch
    return rerank(
        url, texts, flavour=flavour, query=query, model=model, batch=batch, headers=headers
    )


@dataclass(frozen=True)
class TemplatedUrl:
    """A plain URL with a text in it: a search, asked for something else every time."""

    url: str
    texts: tuple[str, ...]
    headers: Mapping[str, str]

    @property
    def name(self) -> str:
        """The URL as it was given."""
        return self.url

    def ask(self, index: int) -> Ask:
        """The text number `index`, wrapping round."""
        text = self.texts[index % len(self.texts)]
        url = self.url.replace("{text}", quote(text, safe=""))
        return Ask("GET", url, self.headers, prompt=digest(text.encode()))

    def read(self, exchange: Exchange) -> Reading:
        """Any answer will do."""
        return PlainUrl(self.url).read(exchange)


def texts_of(ask: AskTable) -> tuple[str, ...]:
    """The texts of a scenario, all different, in the order in which they are asked."""
    base: tuple[str, ...] = QUESTIONS if ask.texts == "questions" else EXAMPLES
    if ask.file is not None:
        try:
            lines = ask.file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadScenario(f"the texts of {ask.file} cannot be read: {error}") from None
        base = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
        if not base:
            raise BadScenario(f"{ask.file} holds no text")
    return tuple(
        base[i % len(base)] + (f" ({i // len(base) + 1})" if i >= len(base) else "")
        for i in range(ask.distinct)
    )


def pairs(case: Case) -> Callable[[int], str]:
    """What pairs request number n of a case with the same one of another run, fresh or not."""
    texts, batch, kind = texts_of(case.ask), case.target.batch, case.target.protocol

    def pair(index: int) -> str:
        chosen = [texts[(index * batch + i) % len(texts)] for i in range(batch)]
        return digest("\n".join([kind, *chosen]).encode())

    return pair


def _key(table: TargetTable, environ: Mapping[str, str]) -> dict[str, str]:
    if not table.key_env:
        return {}
    key = environ.get(table.key_env, "").strip()
    if not key:
        raise BadScenario(f"the environment has no {table.key_env}, which target.key_env names")
    return {"authorization": f"Bearer {key}"}


def bare(url: str) -> str:
    """The URL without credentials, query and fragment: what a run keeps of it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_loopback(url: str) -> bool:
    """Whether the URL asks this very machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
