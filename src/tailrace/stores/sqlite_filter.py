"""A filter as a condition of SQL over the `documents` table."""

from tailrace.stores.documents import author_key
from tailrace.stores.port import Filter


def condition(where: Filter) -> tuple[str, list[str | int]]:
    """The condition and its values, in order; one that is always true where nothing restricts."""
    clauses: list[str] = []
    values: list[str | int] = []
    if where.category is not None:
        path = where.category.rstrip("/")
        clauses.append("(category = ? OR (category >= ? AND category < ?))")
        values += [path, f"{path}/", f"{path}0"]  # "0" follows "/"
    if where.year_from is not None:
        clauses.append("year >= ?")
        values.append(where.year_from)
    if where.year_to is not None:
        clauses.append("year <= ?")
        values.append(where.year_to)
    if where.author is not None:
        clauses.append("instr(author, ?) > 0")
        values.append(author_key(where.author))
    return " AND ".join(clauses) or "1 = 1", values
