"""Our model in BentoML."""

import bentoml
from engine import Engine


@bentoml.service(workers=1, traffic={"timeout": 60}, logging={"access": {"enabled": False}})
class Embedder:
    """Requests of one batch share one run."""

    def __init__(self) -> None:
        self.engine = Engine()

    @bentoml.api(batchable=True, max_batch_size=8, max_latency_ms=2_000)
    def embed(self, texts: list[str]) -> list[list[float]]:
        """One run for the texts of all."""
        return self.engine.embed(texts).tolist()
