"""What can go wrong with a model elsewhere, by name; knows nothing of lanes or HTTP servers."""

from tailrace.core.errors import InputError, ModelBusy, ModelError


class UpstreamFailed(ModelError):
    """The upstream gave no usable answer."""

    code = "upstream-failed"
    whole = True


class UpstreamDenied(UpstreamFailed):
    """The upstream does not accept our key; asking again changes nothing."""


class UpstreamTimeout(ModelError):
    """The upstream took too long; `stage` is the part in which it did."""

    code = "upstream-timeout"
    whole = True
    overload = True

    def __init__(self, message: str | None = None, *, stage: str = "total") -> None:
        super().__init__(message)
        self.stage = stage


class UpstreamBusy(ModelBusy):
    """The upstream refused: too many requests."""

    code = "upstream-busy"


class UpstreamRefused(InputError):
    """The upstream cannot use the request as it is."""

    code = "upstream-refused"
