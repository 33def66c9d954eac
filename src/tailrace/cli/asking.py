"""What is asked of a target, as options of the command line: kind, texts, provider, key, headers.

It measures nothing; `probe` and `watch` both take these options.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from tailrace.bench.reviews import reviews
from tailrace.latency.measure import KEY_HEADERS
from tailrace.latency.targets.choosing import KINDS, CannotChoose
from tailrace.latency.targets.providers import (
    OWN,
    PROVIDERS,
    CannotAsk,
    Effort,
    key_headers,
    provider_of,
    reasoning,
)

TEXTS = 48
"""Different texts that are sent where nobody gives any."""
QUERY = "직원이 친절한 식당"

Kind = Annotated[
    str | None,
    typer.Option(help=f"What is spoken there: {', '.join(KINDS)}. Default: by the path."),
]
Model = Annotated[str, typer.Option(help="The model's name, where the API wants one.")]
Rate = Annotated[
    float | None,
    typer.Option(
        min=0.001, help="Requests per second, evenly spaced. Default: one after the other."
    ),
]
Timeout = Annotated[float, typer.Option(min=0.001, help="Seconds until a request is given up.")]
Text = Annotated[list[str] | None, typer.Option("--text", help="What to send; may be repeated.")]
Texts = Annotated[Path | None, typer.Option(help="A file with one text per line.")]
Query = Annotated[str, typer.Option(help="What rerank ranks for.")]
Batch = Annotated[int | None, typer.Option(min=1, help="Texts per request (embeddings, rerank).")]
Stream = Annotated[bool, typer.Option("--stream/--no-stream", help="Whether a chat streams.")]
Output = Annotated[int, typer.Option(min=1, help="The most tokens of a chat's answer.")]
Reasoning = Annotated[
    str | None,
    typer.Option(
        "--reasoning",
        help=f"How much a chat may think: {', '.join(get_args(Effort))}. Default: not said.",
    ),
]
ProviderName = Annotated[
    str | None,
    typer.Option(help=f"Who serves: {', '.join(p.name for p in PROVIDERS)}. Default: by the host."),
]
KeyEnv = Annotated[str | None, typer.Option(help="The environment variable that holds the key.")]
Header = Annotated[
    list[str] | None, typer.Option(help="'Name: value'; may be repeated. No keys here.")
]
Ca = Annotated[
    Path | None, typer.Option("--ca", help="Certificates to trust instead of the system's.")
]


def asked_of(
    url: str,
    provider: str | None,
    key_env: str | None,
    effort: str | None,
    header: list[str] | None,
) -> dict[str, Any]:
    """Whom it is for, with the key out of the environment; raises CannotAsk."""
    who = provider_of(url, provider)
    known = provider is not None or who is not OWN
    key = key_headers(who, key_env) if known or key_env else {}
    if effort is not None:
        reasoning(who, cast("Effort", effort))
    return {"provider": who, "effort": effort, "headers": {**_headers(header or ()), **key}}


def _headers(given: Sequence[str]) -> dict[str, str]:
    headers = {}
    for one in given:
        name, colon, value = one.partition(":")
        if not colon or not name.strip():
            raise CannotAsk(f"{name.strip()!r} is no header: write 'Name: value'")
        if name.strip().lower() in KEY_HEADERS:
            raise CannotAsk(
                f"a key does not belong on the command line ({name.strip()}): put it into the "
                "environment and name the variable with --key-env"
            )
        headers[name.strip()] = value.strip()
    return headers


def texts_of(given: list[str] | None, file: Path | None) -> list[str]:
    """What to send, from words and a file of lines; raises CannotChoose and OSError."""
    if file is None:
        return given or reviews(TEXTS)
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise CannotChoose(f"{file} is not UTF-8 text") from None
    found = [*(given or ()), *filter(None, lines)]
    if not found:
        raise CannotChoose(f"{file} holds no text")
    return found
