"""Result files of other tools as runs, so that theirs can be compared, drawn and asked what-if."""

from tailrace.latency.imports.recognise import BadImport, Imported, recognise

__all__ = ["BadImport", "Imported", "recognise"]
