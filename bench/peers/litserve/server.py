"""Our model in LitServe."""

import os
from typing import Any

import litserve
from engine import Engine


class Embedder(litserve.LitAPI):
    """Requests of one batch share one run."""

    def setup(self, device: str) -> None:
        """Load the model in the worker."""
        del device
        self.engine = Engine()

    def decode_request(self, request: dict[str, Any]) -> list[str]:
        """A request's texts."""
        return list(request["texts"])

    def predict(self, batch: list[list[str]]) -> list[list[list[float]]]:
        """One run for the texts of all."""
        made = iter(self.engine.embed([text for texts in batch for text in texts]).tolist())
        return [[next(made) for _ in texts] for texts in batch]

    def encode_response(self, output: list[list[float]]) -> dict[str, Any]:
        """A request's vectors."""
        return {"vectors": output}


if __name__ == "__main__":
    api = Embedder(max_batch_size=8, batch_timeout=0.005, api_path="/embed")
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, timeout=60)
    server.run(
        host="127.0.0.1",
        port=int(os.environ["PORT"]),
        generate_client_file=False,
        log_level="warning",
    )
