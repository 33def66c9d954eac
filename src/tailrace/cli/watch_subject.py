"""What a watch measures, from the words of the command line: a target, or a scenario of one's own."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tailrace.bench.scenario import cases, read_scenario
from tailrace.bench.watched import Watched
from tailrace.cli.bench import scenario_changes
from tailrace.latency.address import address
from tailrace.latency.dialing import trust
from tailrace.latency.probing import Plan
from tailrace.latency.targets.choosing import Wanted, choose
from tailrace.latency.watch.port import Measuring
from tailrace.latency.watch.probed import Probed


@dataclass(frozen=True)
class Subject:
    """What is measured, in the words that tell one watch from another, and how."""

    name: str
    question: dict[str, Any]
    measuring: Measuring


def target_subject(wanted: Wanted, plan: Plan, ca: Path | None, days: int) -> Subject:
    """A watch on an address; raises BadAddress, CannotChoose, CannotAsk and OSError."""
    to = address(wanted.url)
    chosen = choose(wanted)
    asks = [chosen.ask(index) for index in range(len(wanted.texts) or 1)]
    url = f"{to.scheme}://{to.authority}{to.target.partition('?')[0]}"
    prompts = " ".join(ask.prompt or "" for ask in asks)
    question: dict[str, Any] = {
        "target": url,
        "kind": wanted.kind or "",
        "model": wanted.model,
        "n": plan.n,
        "rate": plan.rate,
        "timeout_s": plan.timeout_s,
        "batch": wanted.batch,
        "stream": wanted.stream,
        "output_max": wanted.output_max,
        "reasoning": wanted.effort,
        "prompts": hashlib.sha256(prompts.encode()).hexdigest()[:12],
    }
    tls = trust(str(ca)) if ca else None
    probed = Probed(chosen, plan, url, wanted.model or None, tls, days, question)
    return Subject(_folder_name(f"{to.authority}{to.target}", question), question, probed)


def scenario_subject(target: str, changes: list[str], *, remote: bool) -> Subject:
    """A watch on a scenario; raises BadScenario."""
    asked = read_scenario(target, scenario_changes(changes, None))
    question = {
        "scenario": asked.name,
        "cases": [case.model_dump(mode="json") for case in cases(asked)],
    }
    return Subject(_folder_name(asked.name, question), question, Watched(asked, remote))


def _folder_name(says: str, question: dict[str, Any]) -> str:
    """Another question is another watch."""
    mark = hashlib.sha256(orjson.dumps(question, option=orjson.OPT_SORT_KEYS)).hexdigest()[:6]
    safe = re.sub(r"[^\w.-]+", "-", says.partition("?")[0]).strip("-.")[:60]
    return f"watch-{safe}-{mark}"
