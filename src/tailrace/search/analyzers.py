"""The analysers by the names that settings use."""

from typing import Literal

from tailrace.search.morphemes import Morphemes
from tailrace.search.text import Bigrams
from tailrace.stores.port import Analyzer

AnalyzerName = Literal["bigrams", "morphemes"]


def analyzer_named(name: AnalyzerName) -> Analyzer:
    """The analyser of that name; raises StoreUnavailable where its extra is not installed."""
    return Bigrams() if name == "bigrams" else Morphemes()
