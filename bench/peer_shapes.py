"""The bodies that peers take and give: texts in, vectors out. Standard library only."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHAPES = ("openai", "texts", "list", "v2")


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer.toml."""

    name: str
    version: str
    licence: str
    runs: str
    """What it runs: engine and settings, in words."""
    path: str
    """Where embeddings are asked for."""
    shape: str
    """One of SHAPES."""
    model: str
    """The model's name in the body, for shapes that have one; also which model it runs."""
    poison: bool
    """Whether a text can be made to fail inside the model (POISON at start)."""
    deadline: bool
    """Whether it reads X-Deadline-Ms."""
    note: str = ""


def read_peer(folder: Path) -> Peer:
    """The peer.toml of a peer's folder; raises TypeError or ValueError where it is not one."""
    peer = Peer(**tomllib.loads((folder / "peer.toml").read_text(encoding="utf-8")))
    if peer.name != folder.name:
        raise ValueError(f"{folder.name}/peer.toml says name = {peer.name!r}")
    if peer.shape not in SHAPES:
        raise ValueError(f"{peer.name}: shape {peer.shape!r} is none of {', '.join(SHAPES)}")
    return peer


def body(shape: str, model: str, texts: Sequence[str]) -> bytes:
    """The request for `texts`."""
    made: dict[str, Any]
    match shape:
        case "openai":
            made = {"model": model, "input": list(texts)}
        case "v2":
            column = {"name": "texts", "datatype": "BYTES", "shape": [len(texts), 1]}
            made = {
                "inputs": [{**column, "data": list(texts), "parameters": {"content_type": "str"}}]
            }
        case _:
            made = {"texts": list(texts)}
    return json.dumps(made).encode()


def vectors(shape: str, answer: bytes) -> list[list[float]]:
    """The vectors of an answer; raises where it has none."""
    made = json.loads(answer)
    match shape:
        case "openai":
            return [entry["embedding"] for entry in made["data"]]
        case "v2":
            output = made["outputs"][0]
            count, width = output["shape"]
            flat = output["data"]
            return [flat[i * width : (i + 1) * width] for i in range(count)]
        case "list":
            return list(made)
        case _:
            return list(made["vectors"])
