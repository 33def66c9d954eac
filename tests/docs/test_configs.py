"""The configuration files that ship can be used, and the long one tells the truth about the defaults."""

import tomllib

import pytest
from documents import ROOT
from reference_settings import fields

from tailrace.apps.api.server import ApiServer
from tailrace.apps.api.settings import ApiSettings
from tailrace.apps.books.settings import BooksSettings
from tailrace.apps.review.settings import BoxSettings
from tailrace.models.source import HubSource, parse_source
from tailrace.serve.local_settings import ModelOffer
from tailrace.serve.settings import load

API_CONFIGS = [ROOT / "configs" / "api.toml", ROOT / "configs" / "remote.toml"]
BOOKS_CONFIG = ROOT / "configs" / "books.toml"
CONFIGS = sorted(set((ROOT / "configs").glob("*.toml")) - {*API_CONFIGS, BOOKS_CONFIG})


@pytest.mark.parametrize("file", CONFIGS, ids=[file.name for file in CONFIGS])
def test_loads(file):
    settings = load(BoxSettings, file, environ={})
    parse_source(settings.model.source)


@pytest.mark.parametrize("file", API_CONFIGS, ids=[file.name for file in API_CONFIGS])
def test_a_configuration_of_the_model_server_loads_and_its_fallbacks_fit(file, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "only-for-this-test")
    settings = load(ApiSettings, file, environ={})
    for offer in settings.models:
        if isinstance(offer, ModelOffer):
            parse_source(offer.source)
    ApiServer(settings, lambda what, share: None).threads.close()


LONG = pytest.mark.parametrize(
    ("kind", "name"),
    [(BoxSettings, "review.toml"), (ApiSettings, "api.toml"), (BooksSettings, "books.toml")],
)


@LONG
def test_the_long_one_equals_the_defaults(kind, name):
    assert load(kind, ROOT / "configs" / name, environ={}) == kind()


def test_the_long_one_spells_out_every_setting_of_a_model():
    text = (ROOT / "configs" / "api.toml").read_text(encoding="utf-8")
    for offer in tomllib.loads(text)["models"]:
        for path, field in fields(ModelOffer):
            tables, name = path.split(".")[:-1], path.split(".")[-1]
            table = offer[tables[0]] if tables else offer
            mentioned = f"\n# {name} = " in text if field.get_default() is None else name in table
            assert mentioned, f"models.{path} is not spelled out"


@LONG
def test_the_long_one_spells_out_every_setting(kind, name):
    text = (ROOT / "configs" / name).read_text(encoding="utf-8")
    tree = tomllib.loads(text)
    for path, field in fields(kind):
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
