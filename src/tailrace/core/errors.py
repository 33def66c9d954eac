"""What can go wrong, by name. Errors carry a stable `code` and know no HTTP status.

The docstring of a class is its default message. One table in `serve.problems` translates codes.
"""


class TailraceError(Exception):
    """Something went wrong inside tailrace."""

    code = "internal"
    back_s: tuple[float, float] | None = None
    """When the caller should come back: by the whole second, and exactly; set where that is known."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").split("\n", 1)[0])


class Rejected(TailraceError):
    """Refused at the door, before any waiting.

    `retry_after_s` is set by a policy that knows when to come back; otherwise the door computes it.
    """

    code = "rejected"

    def __init__(self, message: str | None = None, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        if retry_after_s is not None:
            self.back_s = (max(1.0, retry_after_s), retry_after_s)


class LaneFull(Rejected):
    """Every seat of the waiting room is taken."""

    code = "lane-full"


class RateLimited(Rejected):
    """This caller asks more often than its allowance."""

    code = "rate-limited"


class Infeasible(Rejected):
    """The answer cannot be ready before the caller's deadline."""

    code = "deadline-infeasible"
    hopeless = False
    """Whether it would be late even with nobody ahead."""


class MemoryPressure(Rejected):
    """The machine is short of memory; taking more work would put running work at risk."""

    code = "memory-pressure"


class Draining(Rejected):
    """The lane is shutting down and takes no new work."""

    code = "draining"

    def __init__(self, message: str | None = None, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message, retry_after_s=retry_after_s)


class ModelHangs(Rejected):
    """Every slot is held by a run that does not come back."""

    code = "model-hangs"

    def __init__(self, message: str | None = None, *, retry_after_s: float = 10.0) -> None:
        super().__init__(message, retry_after_s=retry_after_s)


class QueueTimeout(TailraceError):
    """Admitted, but not started by the latest start."""

    code = "queue-timeout"

    def __init__(self, message: str | None = None, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        if retry_after_s is not None:
            self.back_s = (max(1.0, retry_after_s), retry_after_s)


class ModelError(TailraceError):
    """The model did not answer."""

    code = "model-failed"
    whole = False
    """Whether it struck the run as such, so that no single item can be to blame."""
    overload = False
    """Whether it says that the model was asked for too much at once."""


class ModelBusy(ModelError):
    """The model asks for a pause; `pause_s` is how long nothing should be started."""

    code = "model-busy"
    whole = True
    overload = True

    def __init__(self, message: str | None = None, *, pause_s: float = 1.0) -> None:
        super().__init__(message)
        self.pause_s = pause_s
        self.back_s = (max(1.0, pause_s), pause_s)


class ModelTimeout(ModelError):
    """The model was still running when the deadline passed."""

    code = "model-timeout"


class ModelDied(ModelError):
    """The process that ran the model was killed while it worked."""

    code = "model-died"


class InputError(TailraceError):
    """The request cannot be used as it is."""

    code = "invalid-input"
