"""`tailrace books quality`: how good the search is, leg by leg, kind by kind."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tailrace.apps.books.catalogue import QUERIES
from tailrace.apps.books.server import BooksServer
from tailrace.apps.books.settings import BooksSettings
from tailrace.cli.console import fail, fail_configuration, out, progress_bar
from tailrace.core.errors import TailraceError
from tailrace.models.port import Progress
from tailrace.search.gate import scored
from tailrace.search.hybrid import Mode
from tailrace.search.quality import (
    METRICS,
    Figure,
    Labelled,
    differences,
    figures,
    judged_queries,
    read_queries,
    trec_qrels,
)
from tailrace.serve.settings import BadConfiguration, load

SYSTEMS: dict[str, Mode] = {"keyword": "keyword", "vector": "vector", "hybrid": "hybrid"}
"""The degraded mode is the keyword leg alone."""
PATIENCE_MS = 60_000.0

Rows = dict[str, list[list[float]]]


def quality(
    queries: Annotated[Path, typer.Option(help="JSONL with qid, query, kind, relevant.")] = QUERIES,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    qrels: Annotated[
        Path | None, typer.Option(help="Write the labels in TREC's form here.")
    ] = None,
) -> None:
    """Recall, nDCG and MRR of each leg, of the fusion and of the degraded mode (the keyword leg alone).

    Examples:
      tailrace books quality
      tailrace books quality --queries mine.jsonl --json

    """
    try:
        labelled = read_queries(queries)
        judged = judged_queries(labelled, queries)
        if qrels is not None:
            qrels.write_text(trec_qrels(labelled), encoding="utf-8")
        settings = load(BooksSettings, config, overrides={"search.embed_ms": PATIENCE_MS})
        with progress_bar() as progress:
            server = BooksServer(settings, progress)
            rows = asyncio.run(_measure(server, judged, progress))
    except BadConfiguration as bad:
        fail_configuration(bad)
    except (TailraceError, OSError) as error:
        fail(str(error))
    report = _report(judged, rows) | {
        "queries": len(labelled),
        "without_labels": len(labelled) - len(judged),
        "fusion": asdict(server.search.vote) | {"k": server.search.k},
    }
    if as_json:
        out.print_json(json.dumps(report, default=asdict, ensure_ascii=False))
    else:
        _print(report)


async def _measure(server: BooksServer, judged: list[Labelled], progress: Progress) -> Rows:
    rows: Rows = {name: [] for name in SYSTEMS}
    async with server.running():
        for number, query in enumerate(judged, 1):
            for name, mode in SYSTEMS.items():
                rows[name].append(await scored(server.search, query, mode))
            progress("searching", number / len(judged))
    return rows


def _report(judged: list[Labelled], rows: Rows) -> dict[str, Any]:
    kinds = list(dict.fromkeys(query.kind for query in judged))
    chosen = {kind: [i for i, query in enumerate(judged) if query.kind == kind] for kind in kinds}
    return {
        "all": {name: figures(table) for name, table in rows.items()},
        "hybrid_minus": {
            name: differences(rows["hybrid"], rows[name]) for name in ("keyword", "vector")
        },
        "kinds": {
            kind: {name: figures([table[i] for i in indices]) for name, table in rows.items()}
            for kind, indices in chosen.items()
        },
        "queries_by_kind": {kind: len(indices) for kind, indices in chosen.items()},
    }


def _print(report: dict[str, Any]) -> None:
    table = Table("kind", "n", "system", *METRICS)
    counted = report["queries"] - report["without_labels"]
    for kind, found in (("all", report["all"]), *report["kinds"].items()):
        number = report["queries_by_kind"].get(kind, counted)
        for system, by_metric in found.items():
            table.add_row(kind, str(number), system, *(_figure(by_metric[m]) for m in METRICS))
    for name, by_metric in report["hybrid_minus"].items():
        cells = [_figure(by_metric[m], signed=True) for m in METRICS]
        table.add_row("all", str(counted), f"hybrid - {name}", *cells)
    out.print(table)
    out.print(
        f"{report['queries']} queries, {report['without_labels']} without labels; means with 95 % "
        f"bootstrap intervals over queries; fusion {report['fusion']}; degraded mode = keyword"
    )


def _figure(figure: Figure, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{figure.mean:{sign}.3f} ({figure.low:{sign}.2f}..{figure.high:{sign}.2f})"
