"""What a folder with a model in it holds: the ONNX file, the tokenizer, and what is said about them.

Our own converted models and exports from elsewhere have the same layout, so one reader serves all.
Knows nothing of runtimes.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tailrace.models.errors import ModelUnavailable

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
_SECTION = "tailrace"
_DEFAULT_TOKENS = 512
USUAL_FILES = (
    "model.onnx",
    "model_quantized.onnx",
    "model_int8.onnx",
    "onnx/model_quantized.onnx",
    "onnx/model_int8.onnx",
    "onnx/model.onnx",
)


@dataclass(frozen=True, slots=True)
class Description:
    """What config.json says in its tailrace section, or what is assumed where it says nothing."""

    name: str
    kind: str | None = None
    quantisation: str = "as delivered"
    max_tokens: int = _DEFAULT_TOKENS
    prompts: dict[str, str] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    """Of a classifier: the names of its logits, in their order."""
    problem_type: str | None = None
    """Of a classifier: what its logits mean, in the words of `transformers`."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A readable model folder."""

    path: Path
    onnx: Path
    tokenizer: Path
    description: Description

    @property
    def content_files(self) -> list[str]:
        """Names, relative to the folder, of the files that decide the model's answers."""
        found = [self.onnx, self.tokenizer, self.path / CONFIG]
        found.append(self.onnx.with_name(f"{self.onnx.name}_data"))
        return [str(path.relative_to(self.path)) for path in found if path.is_file()]


def write_description(folder: Path, description: Description) -> None:
    """Write a config.json that says only what Tailrace reads."""
    text = json.dumps({_SECTION: asdict(description)}, indent=1, ensure_ascii=False)
    (folder / CONFIG).write_text(text + "\n", encoding="utf-8")


def read_folder(path: Path, file: str | None = None) -> ModelFolder:
    """Look into a folder; raise ModelUnavailable saying what it lacks."""
    if not path.is_dir():
        raise ModelUnavailable(f"there is no model folder {path}; check the path after dir:")
    onnx = _find_onnx(path, file)
    tokenizer = next((p for p in (path / TOKENIZER, onnx.parent / TOKENIZER) if p.is_file()), None)
    if tokenizer is None:
        raise ModelUnavailable(f"{path} has no {TOKENIZER}; put it beside the ONNX file")
    return ModelFolder(path, onnx, tokenizer, _describe(path))


def _find_onnx(path: Path, file: str | None) -> Path:
    names = (file,) if file else USUAL_FILES
    for name in names:
        if (path / name).is_file():
            return path / name
    others = [] if file else sorted(path.glob("*.onnx"))
    if len(others) == 1:
        return others[0]
    wanted = file or "ONNX file (model.onnx or onnx/model_quantized.onnx, say)"
    raise ModelUnavailable(f"{path} has no {wanted}; export the model to ONNX into it")


def _describe(path: Path) -> Description:
    config: dict[str, Any] = {}
    if (path / CONFIG).is_file():
        try:
            loaded = json.loads((path / CONFIG).read_text(encoding="utf-8"))
            config = loaded if isinstance(loaded, dict) else {}
        except (ValueError, OSError) as error:
            raise ModelUnavailable(f"{path / CONFIG} cannot be read ({error})") from None
    if isinstance(ours := config.get(_SECTION), dict):
        try:
            return Description(**ours)
        except TypeError as error:
            raise ModelUnavailable(f"{path / CONFIG}: {error}") from None
    limit = int(config.get("max_position_embeddings", _DEFAULT_TOKENS))
    if config.get("model_type") in {"roberta", "xlm-roberta", "camembert"}:
        limit -= 2  # their positions begin at 2
    return Description(
        name=path.resolve().name,
        max_tokens=min(limit, _DEFAULT_TOKENS),
        labels=_labels(config.get("id2label")),
        problem_type=config.get("problem_type"),
    )


def _labels(given: Any) -> list[str]:
    """The names of an `id2label`, in the order of their numbers."""
    if not isinstance(given, dict) or not all(str(number).isdigit() for number in given):
        return []
    return [str(given[number]) for number in sorted(given, key=int)]
