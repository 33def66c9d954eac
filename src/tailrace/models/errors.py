"""What can go wrong with a model, by name; knows nothing of lanes or HTTP."""

from tailrace.core.errors import TailraceError


class ModelUnavailable(TailraceError):
    """The model cannot be had: missing folder, missing package, no network, damaged files."""

    code = "model-unavailable"


class UnknownSource(TailraceError):
    """The text given as a model source is none we understand."""

    code = "unknown-model-source"


class UnreadableText(TailraceError):
    """This item's text cannot be turned into tokens; its neighbours are not affected."""

    code = "unreadable-text"


class Abandoned(TailraceError):
    """Nobody waits for this item any more, so it was not computed."""

    code = "abandoned"


class BadOutput(TailraceError):
    """The model answered this item with something that is not a finite number."""

    code = "bad-model-output"
