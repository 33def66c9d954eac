"""The standard table of a run as plain cells, and the sentences above it, in either language."""

from tailrace.latency.quantiles import Estimate
from tailrace.latency.report.told import SURE, Told
from tailrace.latency.report.words import WORDS, Language
from tailrace.latency.runs import Summary
from tailrace.latency.shares import Share


def heads(language: Language) -> list[str]:
    """The columns."""
    words = WORDS[language]
    named = [words[key] for key in ("part", "source", "mean", "share")]
    return [*named, "p50", "p95", "p99", words["worst"], words["tail"]]


def cells(told: Told, language: Language) -> list[list[str]]:
    """One line for each part, and one for the whole."""
    found = [
        [
            line.name,
            line.source,
            number(line.share.ms),
            _share(line.share),
            *(estimate(e) for e in (line.p50, line.p95, line.p99)),
            number(line.worst),
            number(line.tail),
        ]
        for line in told.lines
    ]
    wall = told.sample.wall
    at_least = "≥ " if told.sample.censored.any() else ""
    whole = [
        WORDS[language]["total"],
        "measured",
        at_least + number(float(wall.mean())),
        "100 %",
        *(estimate(e) for e in told.total),
        at_least + number(float(wall.max())),
        at_least + number(told.budget.total_ms),
    ]
    return [*found, whole]


def verdict(told: Told | None, language: Language) -> str:
    """Which part leads, or that none does for sure."""
    words = WORDS[language]
    if told is None:
        return words["untold"]
    leader = told.leader
    return words["leads" if leader.lead >= SURE else "tie"].format(
        part=leader.name,
        share=f"{leader.share:.0%}",
        low=_percent(leader.interval.low),
        high=_percent(leader.interval.high),
        lead=f"{leader.lead:.0%}",
    )


def cut_off(told: Told, language: Language) -> str | None:
    """How many were not waited for to the end, and that their times are lower bounds."""
    censored = told.sample.censored
    if not censored.any():
        return None
    least = f"{told.sample.wall[censored].min():,.0f}"
    return WORDS[language]["cut"].format(count=int(censored.sum()), n=told.sample.n, ms=least)


def load_words(summary: Summary) -> str:
    """How requests were sent, in figures."""
    load = summary.load
    if load is None:
        return "-"
    words = [load.kind]
    if load.concurrency is not None:
        words.append(f"clients {load.concurrency}")
    if load.think_s:
        words.append(f"think {load.think_s:g} s")
    if load.seed is not None:
        words.append(f"seed {load.seed}")
    if load.offered_per_s is not None:
        words.append(f"offered {load.offered_per_s:,.2f}/s")
    if load.achieved_per_s is not None:
        words.append(f"achieved {load.achieved_per_s:,.2f}/s")
    if load.in_flight is not None:
        words.append(f"in flight {load.in_flight:,.2f}")
    if load.little_miss is not None:
        words.append(f"Little {load.little_miss:.1%}")
    if load.lag_p99_ms is not None:
        words.append(f"loop lag p99 {load.lag_p99_ms:.2f} ms")
    return " · ".join([*words, f"{load.duration_s:,.0f} s"])


def request_words(summary: Summary) -> str:
    """What became of the requests."""
    outcomes = " · ".join(f"{name} {count:,}" for name, count in summary.outcomes.items()) or "-"
    apart = {name: n for name, n in summary.phases.items() if name != "steady"}
    kept = " · ".join(f"{name} {count:,}" for name, count in apart.items())
    return f"{outcomes} ({kept})" if kept else outcomes


def number(ms: float) -> str:
    """Milliseconds with the digits that mean something."""
    size = abs(ms)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.01 or size == 0 else 3
    return f"{ms:,.{digits}f}"


def estimate(found: Estimate) -> str:
    """A quantile, its lower bound, or a dash."""
    if found.value is not None:
        return number(found.value)
    return "-" if found.at_least is None else f"≥ {number(found.at_least)}"


def _share(share: Share) -> str:
    low, high = _percent(share.interval.low), _percent(share.interval.high)
    return f"{share.share:.1%} [{low}, {high}]"


def _percent(share: float) -> str:
    return f"{share * 100:.0f}"
