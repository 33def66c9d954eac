"""What benchmark scripts share: figures with what was promised, and the dated result they end in."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

BUSY_SHARE = 0.5
"""Load per core before a run from which the machine was not its own."""

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result: what was promised, what was seen."""

    name: str
    promised: str
    seen: str
    reached: bool
    numbers: dict[str, Any]


def quantile(values: list[float], share: float) -> float:
    """The value that `share` of all are at or under (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def at_most(name: str, values: list[float], most: float, unit: str) -> Figure:
    """The worst of some values against a bound."""
    worst = max(values)
    numbers = {"worst": worst, "p50": median(values), "n": len(values)}
    seen = f"{worst:.2f} (p50 {median(values):.2f}, n {len(values)})"
    return Figure(name, f"<= {most:g} {unit}", seen, worst <= most, numbers)


def ratio(name: str, least: float, values: list[float], **numbers: Any) -> Figure:
    """The median of ratios, one from each round, against the least that is promised."""
    seen = f"{median(values):.3f} (rounds {', '.join(f'{value:.2f}' for value in values)})"
    kept = {"ratios": values, **numbers}
    return Figure(name, f">= {least:g}", seen, median(values) >= least, kept)


def show(figures: list[Figure]) -> None:
    """A line for each figure."""
    for figure in figures:
        reached = "reached" if figure.reached else "NOT reached"
        print(f"{figure.name}: asked {figure.promised}, seen {figure.seen}: {reached}", flush=True)


def report(title: str, figures: list[Figure], machine: dict[str, Any], command: str) -> str:
    """The result as Markdown."""
    lines = [f"# {title}", "", f"`{command}`", ""]
    lines += [f"- {name}: {value}" for name, value in machine.items()]
    lines += ["", "| figure | promised | seen | reached |", "|---|---|---|---|"]
    for figure in figures:
        reached = "yes" if figure.reached else "**no**"
        lines.append(f"| {figure.name} | {figure.promised} | {figure.seen} | {reached} |")
    return "\n".join(lines) + "\n"


def keep(name: str, title: str, figures: list[Figure], machine: dict[str, Any], cmd: str) -> None:
    """Print the result and write it to results/DATE/name.md and .json."""
    machine = {**machine, "load_after": round(os.getloadavg()[0], 2)}
    if machine["load_before"] > BUSY_SHARE * machine["cores"]:
        machine["busy"] = "yes: others worked on this machine; only ratios count"
    text = report(title, figures, machine, cmd)
    folder = RESULTS / machine["when"][:10]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    plain = [{field: getattr(figure, field) for field in Figure.__slots__} for figure in figures]
    kept = json.dumps({"machine": machine, "figures": plain}, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(kept + "\n", encoding="utf-8")
    print(text)
    print(f"kept in {os.path.relpath(folder)}")
