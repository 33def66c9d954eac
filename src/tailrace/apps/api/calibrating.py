"""Measures every model of a configuration and keeps what was found, for the next start."""

from collections.abc import Callable

from tailrace.apps.api.settings import ApiSettings
from tailrace.models.calibration import Calibration, calibrate, keep
from tailrace.models.open import open_cross_encoder, open_embedder
from tailrace.models.probe import Infer
from tailrace.models.threads import InferenceThreads
from tailrace.serve.remote_settings import RemoteOffer

SAMPLE = "점심시간에 갔더니 줄이 길어서 삼십 분을 기다렸는데 음식은 금방 나왔어요"


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
            if offer.kind == "embedding":
                embedder = open_embedder(
                    offer.source, threads=threads, progress=progress, cache_dir=place
                )
                infer: Infer = embedder.vectors
                info, sample = embedder.info, embedder.tokens(SAMPLE)
            else:
                encoder = open_cross_encoder(
                    offer.source, threads=threads, progress=progress, cache_dir=place
                )
                infer = encoder.logits
                info, sample = encoder.info, encoder.pair(SAMPLE, "주차")
            one = calibrate(infer, sample, info.fingerprint, info.max_tokens, progress, rounds)
            keep(one, place)
            found[offer.name] = one
    finally:
        threads.close()
    return found
