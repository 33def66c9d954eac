"""Measures every model of a configuration and keeps what was found, for the next start."""

from collections.abc import Callable

from tailrace.apps.api.settings import ApiSettings
from tailrace.models.calibration import Calibration, calibrate, keep
from tailrace.models.threads import InferenceThreads
from tailrace.serve.opening import Opening
from tailrace.serve.remote_settings import RemoteOffer
from tailrace.serve.served import POOLED


def calibrated(
    settings: ApiSettings, progress: Callable[[str, float], None], rounds: int
) -> dict[str, Calibration]:
    """The findings by the models' names; raises TailraceError where a model cannot be opened."""
    threads = InferenceThreads(1)
    place = settings.cache_dir
    found: dict[str, Calibration] = {}
    try:
        for offer in settings.models:
            if isinstance(offer, RemoteOffer):
                continue  # how it makes its runs is its own affair
            opened = Opening().open(offer, threads, progress, place)
            info, sample = opened.model.info, opened.samples[-1]
            infer = opened.infers[POOLED]
            one = calibrate(infer, sample, info.fingerprint, info.max_tokens, progress, rounds)
            keep(one, place)
            found[offer.name] = one
            opened.model.close()
    finally:
        threads.close()
    return found
