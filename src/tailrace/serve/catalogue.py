"""The models on offer, by name. Knows no dialect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tailrace.serve.chat import ServedChat
from tailrace.serve.classifying import ServedClassifier
from tailrace.serve.embedding import ServedEmbedder
from tailrace.serve.reranking import ServedReranker
from tailrace.serve.served import UnknownModel, WrongKind

K = TypeVar("K", ServedEmbedder, ServedReranker, ServedChat)
Offer = ServedEmbedder | ServedReranker | ServedClassifier | ServedChat


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All offers; the first of a kind is what a request without a model's name gets."""

    offers: tuple[Offer, ...]
    names: Mapping[str, Offer]

    @classmethod
    def of(cls, offers: Iterable[tuple[Offer, Iterable[str]]]) -> "Catalogue":
        """A catalogue of offers and their other names."""
        listed = [(offer, (offer.served.name, *aliases)) for offer, aliases in offers]
        names = {name: offer for offer, known in listed for name in known}
        return cls(tuple(offer for offer, _ in listed), names)

    def embedder(self, name: str | None = None) -> ServedEmbedder:
        """The embedding model of that name; raises UnknownModel or WrongKind."""
        return self._find(name, ServedEmbedder)

    def reranker(self, name: str | None = None) -> ServedReranker:
        """The cross-encoder of that name; raises UnknownModel or WrongKind."""
        return self._find(name, ServedReranker)

    def chat(self, name: str | None = None) -> ServedChat:
        """The chat model of that name; raises UnknownModel or WrongKind."""
        return self._find(name, ServedChat)

    def classifier(self, name: str | None = None) -> ServedReranker | ServedClassifier:
        """The classifier or cross-encoder of that name, and of several the first that has labels."""
        if name is None:
            for offer in self.offers:
                if isinstance(offer, ServedReranker | ServedClassifier) and offer.labels:
                    return offer
        elif isinstance(found := self._named(name), ServedClassifier):
            return found
        return self.reranker(name)

    def any(self, name: str | None = None) -> ServedEmbedder | ServedReranker | ServedClassifier:
        """The model of that name that reads texts on this machine, or the first of them."""
        if name is None:
            for offer in self.offers:
                if not isinstance(offer, ServedChat):
                    return offer
            raise UnknownModel("No model of this kind is on offer here.")
        found = self._named(name)
        if isinstance(found, ServedChat):
            raise WrongKind(f"{name!r} does not do this; it is of another kind.")
        return found

    def _find(self, name: str | None, kind: type[K]) -> K:
        if name is None:
            for offer in self.offers:
                if isinstance(offer, kind):
                    return offer
            raise UnknownModel("No model of this kind is on offer here.")
        found = self._named(name)
        if not isinstance(found, kind):
            raise WrongKind(f"{name!r} does not do this; it is of another kind.")
        return found

    def _named(self, name: str) -> Offer:
        found = self.names.get(name)
        if found is None:
            known = ", ".join(offer.served.name for offer in self.offers)
            raise UnknownModel(f"There is no model {name!r} here; there are: {known}.")
        return found
