"""What can go wrong with a model, by name; knows nothing of lanes or HTTP."""

from tailrace.core.errors import InputError, ModelError, TailraceError


class ModelUnavailable(TailraceError):
    """The model cannot be had: missing folder, missing package, no network, damaged files."""

    code = "model-unavailable"


class UnknownSource(InputError):
    """The text given as a model source is none we understand."""


class UnreadableText(InputError):
    """The item's text cannot be turned into tokens; its neighbours are not affected."""


class UnknownPrompt(InputError):
    """The model was not trained with a prompt of this name."""


class ModelRestarting(ModelError):
    """The model's process was killed and is starting again."""

    code = "model-restarting"


class Abandoned(TailraceError):
    """Nobody waits for this item any more, so it was not computed."""

    code = "abandoned"


class BadOutput(ModelError):
    """The model answered with a number that is not finite; run the model check."""

    code = "bad-output"
