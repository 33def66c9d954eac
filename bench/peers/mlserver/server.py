"""Our model in MLServer."""

from engine import Engine
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Embedder(MLModel):
    """Requests of one batch share one run."""

    async def load(self) -> bool:
        """Load the model."""
        self.engine = Engine()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """One run for the texts of all."""
        texts = StringCodec.decode_input(payload.inputs[0])
        output = NumpyCodec.encode_output("vectors", self.engine.embed(texts))
        return InferenceResponse(model_name=self.name, outputs=[output])
