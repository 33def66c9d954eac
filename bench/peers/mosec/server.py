"""Our model in Mosec."""

from typing import Any

import mosec
from engine import Engine


class Embedder(mosec.Worker):
    """Requests of one batch share one run."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine()

    def forward(self, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """One run for the texts of all."""
        made = iter(self.engine.embed([text for d in data for text in d["texts"]]).tolist())
        return [{"vectors": [next(made) for _ in d["texts"]]} for d in data]


if __name__ == "__main__":
    server = mosec.Server()
    server.append_worker(Embedder, num=1, max_batch_size=8, max_wait_time=5)
    server.run()
