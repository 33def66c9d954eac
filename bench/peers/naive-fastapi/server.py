"""The first version that everybody writes: a route, a thread pool, a model."""

from engine import Engine
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
engine = Engine()


class Request(BaseModel):
    """Texts to embed."""

    texts: list[str]


@app.post("/embed")
def embed(request: Request) -> dict[str, list[list[float]]]:
    """FastAPI runs this on one of its forty threads."""
    return {"vectors": engine.embed(request.texts).tolist()}
