"""A filter as a condition of SQL over the `documents` table. Knows the two dialects, no connection."""

from dataclasses import dataclass

from tailrace.stores.documents import author_key
from tailrace.stores.port import Filter


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database writes a value's place, and which function finds a text in a text."""

    mark: str
    position: str


SQLITE = Dialect("?", "instr")
POSTGRES = Dialect("%s", "strpos")


def condition(where: Filter, dialect: Dialect) -> tuple[str, list[str | int]]:
    """The condition and its values, in order; one that is always true where nothing restricts.

    Categories are compared by code points: the column's collation must be binary.
    """
    mark = dialect.mark
    clauses: list[str] = []
    values: list[str | int] = []
    if where.category is not None:
        path = where.category.rstrip("/")
        clauses.append(f"(category = {mark} OR (category >= {mark} AND category < {mark}))")
        values += [path, f"{path}/", f"{path}0"]  # "0" follows "/"
    if where.year_from is not None:
        clauses.append(f"year >= {mark}")
        values.append(where.year_from)
    if where.year_to is not None:
        clauses.append(f"year <= {mark}")
        values.append(where.year_to)
    if where.author is not None:
        clauses.append(f"{dialect.position}(author, {mark}) > 0")
        values.append(author_key(where.author))
    return " AND ".join(clauses) or "1 = 1", values
