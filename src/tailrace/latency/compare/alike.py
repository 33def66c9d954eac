"""Are two runs alike: the same question, asked the same way, from the same place.

What differs is said beside every verdict, because it may be the whole reason of a change. Only what would
make figures meaningless is refused. Knows nothing of statistics.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tailrace.latency.compare.measured import Measured
from tailrace.latency.sample import Sample

RATE_MISS = 0.05
REUSE_MISS = 0.10
TOKENS_MISS = 0.10
KNOWN_MIN = 0.9
"""In a smaller share of the answered rows, a part is known only at times."""

ABSENT_IS_NOUGHT = frozenset(
    {"sched", "pool", "dns", "connect", "tls", "send", "think", "transfer", "client", "other"}
)
"""Parts that took no time where a row lacks them; any other that is lacking was not told apart."""


class Incomparable(ValueError):
    """Two runs whose figures have nothing to do with each other: why, in one sentence."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same in both runs."""

    what: str
    before: str
    after: str

    def text(self) -> str:
        """As it is printed."""
        return f"{self.what}: {self.before} against {self.after}"

    def to_json(self) -> dict[str, str]:
        """By name."""
        return {"what": self.what, "before": self.before, "after": self.after}


def differences(
    before: Measured, after: Measured, first: Sample, second: Sample
) -> list[Difference]:
    """Everything in which the runs are not alike; raises Incomparable where no prompt is shared."""
    found = list(_prompts(first, second))
    words: list[tuple[str, Callable[[Measured, Sample], str | None]]] = [
        ("protocol", lambda run, rows: _said(rows, "kind") or _of(run, "protocol")),
        ("model", lambda run, rows: _said(rows, "model") or _of(run, "model")),
        ("fingerprint", lambda _, rows: _said(rows, "fingerprint")),
        ("region", lambda _, rows: _said(rows, "region")),
        ("edge", lambda _, rows: _said(rows, "edge")),
        ("reasoning asked", lambda _, rows: _said(rows, "reasoning_asked")),
        ("reasoning seen", lambda _, rows: _thought(rows)),
        ("streamed", lambda _, rows: _said(rows, "streamed")),
        ("batch size", lambda _, rows: _said(rows, "batch_size")),
        (
            "load",
            lambda run, _: run.summary.load.kind if run.summary and run.summary.load else None,
        ),
        ("client build", lambda run, _: _build(run)),
        ("machine", lambda run, _: _machine(run)),
    ]
    for what, ask in words:
        told = (ask(before, first), ask(after, second))
        if told[0] != told[1]:
            found.append(Difference(what, told[0] or "unknown", told[1] or "unknown"))
    found += _numbers(before, after, first, second)
    found += _knowledge(first, second)
    return found


def _prompts(first: Sample, second: Sample) -> Iterator[Difference]:
    one, other = ({row.prompt for row in run.rows if row.prompt} for run in (first, second))
    if not one or not other:
        if one or other:
            yield Difference(
                "prompts", *("told" if known else "not told" for known in (one, other))
            )
        return
    if not one & other:
        raise Incomparable(
            "the runs have no prompt in common: ask both the same questions, or compare files of "
            "rows without prompts if you mean it"
        )
    if one != other:
        yield Difference(
            "prompts", f"{len(one)}, {len(one & other)} of them shared", f"{len(other)}"
        )


def _said(rows: Sample, name: str) -> str | None:
    """What most rows say; None where no row says anything."""
    counts = Counter(str(row.detail[name]) for row in rows.rows if row.detail.get(name) is not None)
    return counts.most_common(1)[0][0] if counts else None


def _of(run: Measured, name: str) -> str | None:
    return getattr(run.summary, name) or None if run.summary is not None else None


def _thought(rows: Sample) -> str | None:
    tokens = [
        row.detail["reasoning_tokens"] for row in rows.rows if "reasoning_tokens" in row.detail
    ]
    if not tokens:
        return None
    return "yes" if sum(tokens) else "no"


def _build(run: Measured) -> str | None:
    versions = run.env.get("versions")
    if not isinstance(versions, dict):
        return None
    commit = run.env.get("commit") or ""
    return f"{versions.get('tailrace')} {commit}{'+' if run.env.get('changed') else ''}".strip()


def _machine(run: Measured) -> str | None:
    return f"{run.env['cpu']}, {run.env.get('cores')} cores" if "cpu" in run.env else None


def _numbers(
    before: Measured, after: Measured, first: Sample, second: Sample
) -> Iterator[Difference]:
    runs, samples = (before, after), (first, second)
    offered = [
        run.summary.load.offered_per_s if run.summary and run.summary.load else None for run in runs
    ]
    if all(offered):
        yield from _apart("rate", offered, "{:.3g}/s", RATE_MISS)
    reused = [_mean(rows, "reused") for rows in samples]
    if None not in reused and abs(_sure(reused[0]) - _sure(reused[1])) > REUSE_MISS:
        yield Difference("connections reused", *(f"{_sure(share):.0%}" for share in reused))
    for name in ("input_tokens", "output_tokens"):
        tokens = [_mean(rows, name) for rows in samples]
        yield from _apart(name.replace("_", " "), tokens, "{:.0f}", TOKENS_MISS)


def _apart(what: str, pair: Sequence[float | None], form: str, miss: float) -> Iterator[Difference]:
    known = [value for value in pair if value is not None]
    if len(known) == 2 and abs(known[0] - known[1]) > miss * max(map(abs, known)):
        yield Difference(what, *(form.format(value) for value in known))


def _mean(rows: Sample, name: str) -> float | None:
    values = [
        row.detail[name] for row in rows.rows if isinstance(row.detail.get(name), int | float)
    ]
    return sum(values) / len(values) if values else None


def _sure(value: float | None) -> float:
    assert value is not None
    return value


def _knowledge(first: Sample, second: Sample) -> Iterator[Difference]:
    """How a part is known, where that is not the same or not always so."""
    for name in [name for name in first.names if name in second.names]:
        told = [source_of(rows, name) for rows in (first, second)]
        if told[0] != told[1]:
            yield Difference(f"source of {name}", *told)


def source_of(rows: Sample, name: str) -> str:
    """How most answered rows know a part, and in what share of them it is known if not in all."""
    answered = [row for row in rows.rows if not row.censored]
    sources = Counter(row.parts[name].source for row in answered if name in row.parts)
    if not sources:
        return "-"
    source = sources.most_common(1)[0][0]
    share = sum(sources.values()) / len(answered)
    if name in ABSENT_IS_NOUGHT or share >= KNOWN_MIN:
        return source
    return f"{source} in {share:.0%}"


def folded(first: Sample, second: Sample) -> tuple[Sample, Sample, tuple[str, ...]]:
    """Both with the same parts: what only one tells apart goes into `other` of both.

    Also returns what was folded. Raises Incomparable where nothing that is told apart remains.
    """
    apart = set(first.names) ^ set(second.names)
    fold = tuple(name for name in (*first.names, *second.names) if name in apart - ABSENT_IS_NOUGHT)
    if fold:
        shared = set(first.names) & set(second.names) - {"other"}
        if not any(first.on([name]).any() or second.on([name]).any() for name in shared):
            names = [", ".join(run.names) for run in (first, second)]
            raise Incomparable(f"no part is told apart in both runs: {names[0]} against {names[1]}")
    return first.fold(fold, "other"), second.fold(fold, "other"), fold
