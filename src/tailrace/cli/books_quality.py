"""`tailrace books quality`: how good the search is, leg by leg, kind by kind."""

import asyncio
import contextlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tailrace.apps.books.baseline import Remote, RemoteBaseline, rankings
from tailrace.apps.books.catalogue import QUERIES
from tailrace.apps.books.server import BooksServer
from tailrace.apps.books.settings import BooksSettings
from tailrace.cli.console import fail, fail_configuration, out, progress_bar
from tailrace.core.errors import TailraceError
from tailrace.models.port import Progress
from tailrace.search.gate import scored
from tailrace.search.hybrid import HybridSearch, Mode
from tailrace.search.quality import (
    DEPTH,
    METRICS,
    Figure,
    Labelled,
    differences,
    figures,
    judged_queries,
    read_queries,
    scores,
    trec_qrels,
)
from tailrace.serve.settings import BadConfiguration, load
from tailrace.stores.port import Space

SYSTEMS: tuple[Mode, ...] = ("keyword", "vector", "hybrid")
"""The degraded mode is the keyword leg alone."""
RERANKED = "reranked"
"""The hybrid with the rerank stage, where the settings have one."""
BASELINE = "baseline"
"""What a model elsewhere is called in the report."""
PATIENCE = {"search.embed_ms": 60_000.0, "search.rerank_ms": 60_000.0}

Rows = dict[str, list[list[float]]]


def quality(
    queries: Annotated[
        Path,
        typer.Option(
            help="JSONL with qid, query, kind, relevant.", show_default="the dev queries that ship"
        ),
    ] = QUERIES,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    qrels: Annotated[
        Path | None, typer.Option(help="Write the labels in TREC's form here.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="URL", help="An OpenAI-compatible API to compare with: https://…/v1."),
    ] = None,
    baseline_model: Annotated[str, typer.Option(metavar="NAME", help="Its model.")] = "",
    baseline_key_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The environment variable that holds its key."),
    ] = None,
    baseline_query_prefix: Annotated[str, typer.Option(help="Stands before queries.")] = "",
    baseline_document_prefix: Annotated[str, typer.Option(help="Stands before documents.")] = "",
) -> None:
    """Recall, nDCG and MRR of each leg, of the fusion and of the degraded mode (the keyword leg alone).

    With --baseline also of the vectors of an embedding model elsewhere: every document and query is sent
    there, in batches; nothing of it is kept.

    Examples:
      tailrace books quality
      tailrace books quality --queries mine.jsonl --json
      tailrace books quality --baseline https://llm.example/v1 --baseline-model far --baseline-key-env KEY

    """
    if bool(baseline) != bool(baseline_model):
        fail("--baseline URL and --baseline-model NAME go together")
    remote = None
    if baseline:
        prefixes = (baseline_query_prefix, baseline_document_prefix)
        remote = Remote(baseline, baseline_model, baseline_key_env, *prefixes)
    try:
        labelled = read_queries(queries)
        judged = judged_queries(labelled, queries)
        if qrels is not None:
            qrels.write_text(trec_qrels(labelled), encoding="utf-8")
        settings = load(BooksSettings, config, overrides=PATIENCE)
        with progress_bar() as progress:
            server = BooksServer(settings, progress)
            rows, space = asyncio.run(_measure(server, judged, remote, progress))
    except BadConfiguration as bad:
        fail_configuration(bad)
    except (TailraceError, OSError) as error:
        fail(str(error))
    report = _report(judged, rows) | {
        "queries": len(labelled),
        "without_labels": len(labelled) - len(judged),
        "fusion": asdict(server.searches.search.vote) | {"k": server.searches.search.k},
        "rerank": None if (stage := server.searches.search.reranking) is None else stage.told(),
        "analyzer": server.store.analyzer.fingerprint,
        "baseline": None if space is None else asdict(space) | {"fingerprint": space.fingerprint},
    }
    if as_json:
        out.print_json(json.dumps(report, default=asdict, ensure_ascii=False))
    else:
        _print(report)


async def _measure(
    server: BooksServer, judged: list[Labelled], remote: Remote | None, progress: Progress
) -> tuple[Rows, Space | None]:
    asked: list[tuple[str, HybridSearch, Mode]] = [
        (mode, server.searches.search.without_rerank(), mode) for mode in SYSTEMS
    ]
    if server.searches.search.reranking is not None:
        asked.append((RERANKED, server.searches.search, "hybrid"))
    rows: Rows = {name: [] for name, _, _ in asked}
    space = None
    async with server.running():
        if remote is not None:
            rows[BASELINE], space = await _elsewhere(server, judged, remote, progress)
        for number, query in enumerate(judged, 1):
            for name, search, mode in asked:
                rows[name].append(await scored(search, query, mode))
            progress("searching", number / len(judged))
    return rows, space


async def _elsewhere(
    server: BooksServer, judged: list[Labelled], remote: Remote, progress: Progress
) -> tuple[list[list[float]], Space]:
    async with contextlib.aclosing(RemoteBaseline(remote)) as far:
        asked = await far.queries([query.text for query in judged], progress)
        every = server.store.stats().documents
        documents = await server.ask_store(server.store.missing, asked.space, every)
        found = rankings(
            asked,
            await far.documents(documents, progress),
            [document.id for document in documents],
            DEPTH,
        )
    table = [scores(ids, query.relevant) for ids, query in zip(found, judged, strict=True)]
    return table, asked.space


def _report(judged: list[Labelled], rows: Rows) -> dict[str, Any]:
    kinds = list(dict.fromkeys(query.kind for query in judged))
    chosen = {kind: [i for i, query in enumerate(judged) if query.kind == kind] for kind in kinds}
    return {
        "all": {name: figures(table) for name, table in rows.items()},
        "hybrid_minus": {
            name: differences(rows["hybrid"], table)
            for name, table in rows.items()
            if name != "hybrid"
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
    if space := report["baseline"]:
        out.print(
            f"{BASELINE}: {space['model']}, {space['dimension']} dimensions, space "
            f"{space['fingerprint']}, compared only with vectors of its own",
            markup=False,
            soft_wrap=True,
        )
    out.print(
        f"{report['queries']} queries, {report['without_labels']} without labels; means with 95 % "
        f"bootstrap intervals over queries; fusion {report['fusion']}; degraded mode = keyword; "
        f"analyser {report['analyzer']}, rerank {report['rerank'] or 'off'}"
    )


def _figure(figure: Figure, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{figure.mean:{sign}.3f} ({figure.low:{sign}.2f}..{figure.high:{sign}.2f})"
