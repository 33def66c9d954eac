"""Keeps imported runs as folders, like those that were measured here."""

from datetime import timedelta
from pathlib import Path

from tailrace.latency.imports.shapes import Imported
from tailrace.latency.runs import Head, Load, RunWriter, Summary, new_folder

BEST_BEFORE_DAYS = 30


def keep_imported(found: Imported, root: Path) -> tuple[Path, Summary]:
    """Write one run below `root`; the machine is unknown, and said to be. Raises BadRun."""
    folder = new_folder(root, found.name, found.began)
    head = Head(
        id=folder.name,
        kind="import",
        scenario=found.name,
        question=f"Measured by {found.tool}.",
        target=found.target,
        protocol=found.protocol,
        model=found.model,
        began=found.began,
        best_before=(found.began + timedelta(days=BEST_BEFORE_DAYS)).date(),
    )
    load = Load(kind=found.kind, duration_s=found.duration_s, offered_per_s=found.offered_per_s)
    with RunWriter(folder, head, env={"tool": found.tool}) as writer:
        writer.append(*found.rows)
        made = writer.finish(load=load, reasons=found.reasons, notes=found.notes)
    return folder, made
