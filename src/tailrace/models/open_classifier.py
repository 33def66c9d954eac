"""Opens classifiers: the sequence classification models of `transformers`, exported to ONNX."""

from pathlib import Path

from tailrace.models.chunks import CHUNK_TOKENS
from tailrace.models.classifier import LOGITS, OnnxClassifier
from tailrace.models.errors import ModelUnavailable
from tailrace.models.open import CLASSIFIER, fetch, model_info, silent
from tailrace.models.port import Progress
from tailrace.models.probe import PROBE_TEXTS, TOLERANCE, invariance, warm_up
from tailrace.models.runtimes import IN_THREADS, Running
from tailrace.models.source import parse_source
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import PairTokens, TextTokens, load_tokenizer


def open_classifier(
    source: str,
    *,
    threads: InferenceThreads | None = None,
    progress: Progress = silent,
    cache_dir: Path | None = None,
    running: Running = IN_THREADS,
) -> OnnxClassifier:
    """Open a classifier; without `threads` it starts its own and stops them on close.

    The names of its labels and what its logits mean are read from its config.json.
    """
    parsed = parse_source(source)
    folder = fetch(parsed, CLASSIFIER, progress=progress, cache_dir=cache_dir)
    progress("opening the classifier", 0.92)
    own = threads or InferenceThreads()
    info = model_info(parsed, folder, CLASSIFIER)
    tokenizer = load_tokenizer(folder.tokenizer)
    session = running.open(folder.onnx, own.count)
    if LOGITS not in session.outputs:
        session.close()
        raise ModelUnavailable(f"{folder.onnx} has no output logits; it is no classifier")
    model = OnnxClassifier(
        info,
        session,
        TextTokens(tokenizer, info.max_tokens),
        PairTokens(tokenizer, info.max_tokens),
        own,
        labels=folder.description.labels,
        problem_type=folder.description.problem_type,
        owns_threads=threads is None,
    )
    progress("warming up", 0.95)
    probes = [model.tokens(text) for text in PROBE_TEXTS]
    model.found_invariant(invariant=invariance(model.logits, probes) <= TOLERANCE)
    warm_up(model.logits, probes[0], info.max_tokens, CHUNK_TOKENS)
    progress("ready", 1.0)
    return model
