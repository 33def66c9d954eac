"""An embedder on ONNX Runtime: texts in, unit vectors out.

Knows nothing of lanes, doors or where the model came from.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tailrace.core.work import Run
from tailrace.models.batch import Row, run_rows
from tailrace.models.chunks import CHUNK_TOKENS
from tailrace.models.errors import BadOutput, ModelUnavailable, UnknownPrompt
from tailrace.models.port import FloatArray, ModelInfo
from tailrace.models.session import Session
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import TextTokens, Tokens
from tailrace.models.vocabulary import Vocabulary

_POOLED = ("sentence_embedding",)
_BY_TOKEN = ("last_hidden_state", "token_embeddings")


class OnnxEmbedder:
    """Embeds in sorted sub-batches over all inference threads."""

    def __init__(
        self,
        info: ModelInfo,
        session: Session,
        tokens: TextTokens,
        threads: InferenceThreads,
        *,
        prompts: dict[str, str],
        owns_threads: bool = False,
        chunk_tokens: int = CHUNK_TOKENS,
    ) -> None:
        self._info = info
        self._session = session
        self._tokens = tokens
        self._threads = threads
        self._prompts = prompts
        self._owns_threads = owns_threads
        self._chunk_tokens = chunk_tokens
        self._by_token = next((n for n in _BY_TOKEN if n in session.outputs), "")
        self._output = next((n for n in _POOLED + _BY_TOKEN if n in session.outputs), "")
        if not self._output:
            raise ModelUnavailable(
                f"{info.name} has none of the outputs of an embedder "
                f"({', '.join(_POOLED + _BY_TOKEN)}); export it as one"
            )

    @property
    def session(self) -> Session:
        """What runs it."""
        return self._session

    @property
    def info(self) -> ModelInfo:
        """What this model is."""
        return self._info

    @property
    def prompts(self) -> dict[str, str]:
        """The prefixes the model was trained with, by name."""
        return dict(self._prompts)

    def embed(
        self, texts: Sequence[str], run: Run, *, prompt: str | None = None
    ) -> list[FloatArray | Exception]:
        """One unit vector per text; see the port."""
        prefix = self.prefix(prompt)
        rows: list[Row] = []
        answers: list[FloatArray | Exception | None] = [None] * len(texts)
        for item, text in enumerate(texts):
            try:
                rows.append(Row(item, self._tokens.encode(prefix, text)))
            except Exception as error:  # noqa: BLE001 - it is this item's answer
                answers[item] = error
        run.mark("tokenize")
        outcomes = run_rows(rows, self.vectors, self._threads, run, self._chunk_tokens)
        run.mark("infer")
        for row, outcome in zip(rows, outcomes, strict=True):
            answers[row.item] = outcome if isinstance(outcome, Exception) else _unit(outcome)
        run.mark("post")
        return [answer for answer in answers if answer is not None]

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's own view of texts."""
        return self._tokens.vocabulary

    @property
    def knows_tokens(self) -> bool:
        """Whether the graph gives a vector for every token."""
        return bool(self._by_token)

    def tokens(self, text: str, *, prompt: str | None = None, left: bool = False) -> Tokens:
        """The input the model reads for one text; `left` cuts what is too long at its beginning."""
        return self._tokens.encode(self.prefix(prompt), text, left=left)

    def vectors(self, batch: Sequence[Tokens]) -> FloatArray:
        """One run: a vector per input, not yet of unit length."""
        result = self._session.run(batch, self._output)
        if self._output in _POOLED:
            return result
        lengths = [len(tokens.ids) for tokens in batch]
        means = [result[row, :length].mean(axis=0) for row, length in enumerate(lengths)]
        return np.asarray(means, np.float32)

    def token_vectors(self, batch: Sequence[Tokens]) -> list[FloatArray]:
        """One run: for every input a vector for each of its tokens; see `knows_tokens`."""
        result = self._session.run(batch, self._by_token)
        return [result[row, : len(tokens.ids)] for row, tokens in enumerate(batch)]

    def unit_vectors(self, batch: Sequence[Tokens]) -> FloatArray:
        """One run: a unit vector per input; not finite where the model's answer was not."""
        result = self.vectors(batch)
        length = np.linalg.norm(result, axis=1, keepdims=True)
        return np.asarray(result / np.maximum(length, np.float32(1e-12)), np.float32)

    def vector(self, text: str, *, prompt: str | None = None) -> FloatArray:
        """The unit vector of one text, computed on the calling thread; errors are raised."""
        answer = _unit(self.vectors([self.tokens(text, prompt=prompt)])[0])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def cost(self, text: str, *, prompt: str | None = None) -> float:
        """Tokens the model will read for this text."""
        return float(len(self._tokens.encode(self.prefix(prompt), text).ids))

    def close(self) -> None:
        """Let go of the weights; stop the threads if they are ours alone."""
        self._session.close()
        if self._owns_threads:
            self._threads.close()

    def found_invariant(self, *, invariant: bool) -> None:
        """Write down what the probe measured."""
        self._info = replace(self._info, batch_invariant=invariant)

    def prefix(self, prompt: str | None) -> str:
        """What stands before a text under a prompt; raises UnknownPrompt."""
        if prompt is None:
            return ""
        if prompt not in self._prompts:
            known = ", ".join(self._prompts) or "none"
            raise UnknownPrompt(f"{self._info.name} knows no prompt {prompt!r}; it knows: {known}")
        return self._prompts[prompt]


def _unit(vector: FloatArray) -> FloatArray | Exception:
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(length) or length == 0:
        return BadOutput()
    return np.asarray(vector / length, np.float32)
