"""What can be wrong with a run's folder."""


class BadRun(ValueError):
    """The folder holds no run that can be read: what is wrong with it, in one sentence."""
