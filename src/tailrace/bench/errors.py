"""What can be wrong with a scenario, or with whom it asks."""


class BadScenario(ValueError):
    """The scenario cannot be run: what is wrong with it, in one sentence."""


class NoAnswer(Exception):
    """Whoever is asked does not answer in a way that could be measured: why, in one sentence."""
