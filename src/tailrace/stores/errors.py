"""What a store may refuse or fail at."""

from tailrace.core.errors import InputError, TailraceError


class StoreError(TailraceError):
    """The store failed."""

    code = "store-failed"


class StoreUnavailable(StoreError):
    """The store does not answer."""

    code = "store-unavailable"


class StoreTooNew(StoreError):
    """The store was written by a newer tailrace; this one leaves it alone."""

    code = "store-too-new"


class StoreForeign(StoreError):
    """The file or database is not a store of tailrace."""

    code = "store-foreign"


class AnalyzerMismatch(StoreError):
    """The keyword index was made by another analyser; index it again."""

    code = "analyzer-mismatch"


class SpaceMismatch(StoreError):
    """The vectors are of another space than the store's."""

    code = "space-mismatch"


class CanaryMismatch(SpaceMismatch):
    """The model no longer gives the vectors that the store holds."""

    code = "canary-mismatch"


class UnknownSpace(StoreError):
    """The store holds no such space."""

    code = "unknown-space"


class SpaceInUse(StoreError):
    """The active space cannot be dropped; switch to another one first."""

    code = "space-in-use"


class UnknownDocument(InputError):
    """There is no such document."""

    code = "unknown-document"


class BadDocument(InputError):
    """The document cannot be kept as it is."""

    code = "bad-document"


class BadVectors(InputError):
    """The vectors cannot be used."""

    code = "bad-vectors"
