"""The configuration files that ship can be used, and the long one tells the truth about the defaults."""

import tomllib

import pytest
from documents import ROOT, reference

from tailrace.apps.api.server import ApiServer
from tailrace.apps.api.settings import ApiSettings
from tailrace.apps.review.settings import BoxSettings
from tailrace.models.source import HubSource, parse_source
from tailrace.serve.settings import load

API_CONFIGS = [ROOT / "configs" / "remote.toml"]
CONFIGS = sorted(set((ROOT / "configs").glob("*.toml")) - set(API_CONFIGS))


@pytest.mark.parametrize("file", CONFIGS, ids=[file.name for file in CONFIGS])
def test_loads(file):
    settings = load(BoxSettings, file, environ={})
    parse_source(settings.model.source)


@pytest.mark.parametrize("file", API_CONFIGS, ids=[file.name for file in API_CONFIGS])
def test_a_configuration_of_the_model_server_loads_and_its_fallbacks_fit(file, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "only-for-this-test")
    settings = load(ApiSettings, file, environ={})
    ApiServer(settings, lambda what, share: None).threads.close()


def test_the_long_one_equals_the_defaults():
    assert load(BoxSettings, ROOT / "configs" / "review.toml", environ={}) == BoxSettings()


def test_the_long_one_spells_out_every_setting():
    text = (ROOT / "configs" / "review.toml").read_text(encoding="utf-8")
    tree = tomllib.loads(text)
    for path, field in reference.fields(BoxSettings):
        *tables, name = path.split(".")
        table = tree
        for step in tables:
            table = table[step]
        if field.get_default() is None:
            assert f"\n# {name} = " in text, f"{path} is not mentioned"
        else:
            assert name in table, f"{path} is not spelled out"


def test_the_original_model_is_taken_from_the_hub_under_the_original_limit():
    settings = load(BoxSettings, ROOT / "configs" / "review-bge.toml", environ={})
    source = parse_source(settings.model.source)
    assert source == HubSource("Xenova/bge-reranker-base", None, "onnx/model_quantized.onnx")
    assert settings.naive.memory_limit_mib == round(1.2 * 1024)
