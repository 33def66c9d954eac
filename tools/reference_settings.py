"""The page of configuration: every setting with its type, default and meaning, from the code."""

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tailrace.apps.api.settings import AnyOffer, ApiSettings
from tailrace.apps.books.settings import BooksSettings
from tailrace.apps.review.settings import BoxSettings
from tailrace.serve.local_settings import ModelOffer
from tailrace.serve.remote_settings import AdaptiveSettings, RemoteOffer, TimeoutSettings
from tailrace.serve.settings import DoorSettings, PolicySettings

TYPES = {
    int: "whole number",
    float: "number",
    bool: "true or false",
    str: "text",
    SecretStr: "text",
    Path: "path",
}
SIGNS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def fields(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting below `model` that holds a value, by its path in the file."""
    for name, field in model.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, BaseModel):
            yield from fields(below, f"{path}{name}.")
        else:
            yield f"{path}{name}", field


def tables(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Every table of the file, by its path; the doors' common shape only once."""
    yield path, model
    for name, field in model.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, BaseModel):
            yield from tables(below, f"{path}.{name}" if path else name)


def policies() -> list[type[BaseModel]]:
    """The kinds of policy, in the order of the union."""
    union = get_args(PolicySettings)[0]
    return list(get_args(union))


def kind_of(field: FieldInfo) -> str:
    """The type of a setting, in words, with its bounds."""
    words = type_words(field.annotation)
    bounds = [
        f"{word} {getattr(limit, sign):g}"
        for limit in field.metadata
        for sign, word in SIGNS.items()
        if getattr(limit, sign, None) is not None
    ]
    return ", ".join([words, *bounds])


def type_words(annotation: Any) -> str:
    """A Python type in the words of the page."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return type_words(get_args(annotation)[0])
    if origin is Literal:
        return " or ".join(f"`{value!r}`".replace("'", '"') for value in get_args(annotation))
    if origin in {Union, types.UnionType}:
        some = [a for a in get_args(annotation) if a is not type(None)]
        if len(some) == 1:
            return type_words(some[0])
        return "whole number or table" if int in some else "policy"
    if origin is tuple:
        of = get_args(annotation)[0]
        return f"list of {'texts' if of is str else 'models' if of == AnyOffer else 'policies'}"
    return TYPES[annotation]


def default_of(field: FieldInfo, given: Any = None) -> str:
    """The default of a setting, or the one `given`, as TOML where it has one."""
    if given is None and field.is_required():
        return "must be given"
    value = field.get_default(call_default_factory=True) if given is None else given
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, tuple):
        return "`[]`" if not value else "see below"
    return f"`{json.dumps(value)}`"


def setting_rows(model: type[BaseModel], table: BaseModel | None = None) -> list[str]:
    """One row per value of one table, whose defaults are those of `table` if it is given."""
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, BaseModel):
            continue
        if not field.description and name != "kind":
            raise SystemExit(f"{model.__name__}.{name} has no docstring: say what it is for")
        meaning = " ".join((field.description or "Which policy this is.").split())
        rows.append(
            f"| `{name}` | {kind_of(field)} | {default_of(field, getattr(table, name, None))} | {meaning} |"
        )
    return rows


def policy_toml(policy: BaseModel) -> str:
    """One policy as it stands in a file, its own defaults left out."""
    values = policy.model_dump(exclude_defaults=True)
    inside = ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items())
    return f"{{ {inside} }}"


def summary(model: type[BaseModel]) -> str:
    """The first paragraph of a class's docstring."""
    return " ".join((model.__doc__ or "").split("\n\n", maxsplit=1)[0].split())


def configuration() -> str:
    """The whole of configuration.md."""
    lines = [
        "# Configuration",
        "",
        "Written by `make docs` from the settings in the code; do not edit.",
        "",
        "A TOML file, given with `tailrace serve --config FILE`. Every setting has a default, so a file",
        "holds only what differs. Unknown names are errors; all mistakes are reported at once, with their",
        "paths. `tailrace serve --check` prints what would be used and leaves.",
        "",
        "Order of precedence: command line, environment, file, default. The environment spells a path",
        "with two underscores: `TAILRACE__LANE__BATCH__WINDOW_MS=10` is `lane.batch.window_ms = 10`. A",
        "value is read as JSON where it is JSON, else as text.",
        "",
        "[configs/review.toml](../../configs/review.toml) spells the defaults out.",
    ]
    lines += table_sections(BoxSettings)
    lines += ["", "## [doors.limited], [doors.batched], [doors.queue]", ""]
    lines += [
        summary(DoorSettings),
        "",
        *setting_rows(DoorSettings),
        "",
        "The defaults:",
        "",
        "```toml",
    ]
    doors = BoxSettings().doors
    for name in type(doors).model_fields:
        door = getattr(doors, name)
        lines += [f"[doors.{name}]", f"batch = {json.dumps(door.batch)}", "policies = ["]
        lines += [f"    {policy_toml(policy)}," for policy in door.policies]
        lines += ["]", ""]
    lines[-1] = "```"
    lines += ["", "## Policies", ""]
    lines += [
        "A door asks all of its policies; all must agree, and the earliest latest start counts."
    ]
    for model in policies():
        (kind,) = get_args(model.model_fields["kind"].annotation)
        lines += ["", f"### {kind}", "", summary(model), "", *setting_rows(model)]
    lines += model_server()
    lines += book_service()
    return "\n".join(lines) + "\n"


def table_sections(
    settings: type[BaseModel], under: str = "", filled: BaseModel | None = None
) -> list[str]:
    """A section for every table of a file, the doors left out; `filled` holds other defaults."""
    lines: list[str] = []
    for path, model in tables(settings):
        own = [f for f in model.model_fields.values() if not _is_table(f)]
        if not own or model is DoorSettings or not path:
            continue
        rows = setting_rows(model, getattr(filled, path, None))
        lines += ["", f"## [{under}{path}]", "", summary(model), "", *rows]
    return lines


def model_server() -> list[str]:
    """The settings of `tailrace api`."""
    return [
        "",
        "# The model server",
        "",
        "The file of `tailrace api --config FILE`; precedence and environment are as above, `--check` too.",
        "[configs/api.toml](../../configs/api.toml) spells the defaults out.",
        "",
        "## At the top of the file",
        "",
        *setting_rows(ApiSettings),
        "",
        "## [[models]]",
        "",
        summary(ModelOffer),
        "",
        *setting_rows(ModelOffer),
        *table_sections(ModelOffer, "models."),
        "",
        "## [models.door]",
        "",
        "As the doors of the review box: `batch` and `policies`.",
        *table_sections(ApiSettings, filled=ApiSettings()),
    ]


def book_service() -> list[str]:
    """The settings of `tailrace books`."""
    return [
        "",
        "# The book service",
        "",
        "The file of `tailrace books serve --config FILE` and of the other `tailrace books` verbs;",
        "precedence and environment are as above, `--check` too.",
        "[configs/books.toml](../../configs/books.toml) spells the defaults out.",
        "",
        "## At the top of its file",
        "",
        *setting_rows(BooksSettings),
        *table_sections(BooksSettings),
        "",
        "`model.door`, `search.door` and `cover.door` are as the doors of the review box.",
    ]


def remote_settings() -> str:
    """The settings of models elsewhere."""
    lines = []
    for heading, model in (
        ('`[[models]]` with `kind = "remote-..."`', RemoteOffer),
        ("`timeouts`", TimeoutSettings),
        ("`slots`, where they are found", AdaptiveSettings),
    ):
        lines += [f"### {heading}", "", summary(model), "", *setting_rows(model), ""]
    return "\n".join(lines).strip()


def _is_table(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
