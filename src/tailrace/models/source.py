"""Where a model comes from, as one word: `dir:PATH`, `hf:ORG/NAME[@REV][:FILE]`, `package:NAME`.

Only reads the word; knows nothing of files, networks or runtimes.
"""

from dataclasses import dataclass

from tailrace.models.errors import UnknownSource


@dataclass(frozen=True, slots=True)
class DirSource:
    """A folder with an ONNX file and a tokenizer.json."""

    path: str
    file: str | None = None

    def __str__(self) -> str:
        return f"dir:{self.path}"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository of the Hugging Face Hub, at a revision, with the ONNX file to take from it."""

    repo: str
    revision: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"hf:{self.repo}{revision}" + (f":{self.file}" if self.file else "")


@dataclass(frozen=True, slots=True)
class PackageSource:
    """Weights that an installed Python package ships."""

    name: str

    def __str__(self) -> str:
        return f"package:{self.name}"


Source = DirSource | HubSource | PackageSource

_FORMS = "dir:PATH, hf:ORG/NAME[@REV][:FILE] or package:NAME"


def parse_source(text: str) -> Source:
    """Read a model source; raise UnknownSource saying what the forms are."""
    kind, colon, rest = text.strip().partition(":")
    if not colon or not rest:
        raise UnknownSource(f"{text!r} is no model source; write {_FORMS}")
    match kind:
        case "dir":
            return DirSource(rest)
        case "package":
            return PackageSource(rest)
        case "hf":
            name, _, file = rest.partition(":")
            repo, _, revision = name.partition("@")
            if repo.count("/") != 1 or not all(repo.split("/")):
                raise UnknownSource(f"{text!r} names no ORG/NAME on the Hub; write {_FORMS}")
            return HubSource(repo, revision or None, file or None)
        case _:
            raise UnknownSource(f"{kind!r} is no kind of model source; write {_FORMS}")
