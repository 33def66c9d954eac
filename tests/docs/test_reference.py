"""The reference pages say what the code says."""

import ast

import pytest
from documents import ROOT
from pydantic import BaseModel
from reference import REFERENCE, pages
from reference_bounds import BOUNDING_CONSTANTS, BOUNDING_SETTINGS
from reference_settings import fields, policies, tables

from tailrace.apps.api.settings import ApiSettings
from tailrace.apps.review.settings import BoxSettings
from tailrace.serve.local_settings import ModelOffer
from tailrace.serve.problems import STATUS
from tailrace.wire import headers

PAGES = pages()
NAMES = [path.name for path in PAGES]


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_a_generated_page_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == PAGES[path], "run: make docs"


def test_every_setting_is_documented():
    page = PAGES[REFERENCE / "configuration.md"]
    models = [
        model
        for settings in (BoxSettings, ApiSettings, ModelOffer)
        for _, model in tables(settings)
    ] + policies()
    for model in models:
        for name, field in model.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                continue
            assert name == "kind" or field.description, f"{model.__name__}.{name} has no docstring"
            assert f"| `{name}` |" in page


def test_every_bounding_constant_of_the_code_is_listed():
    """A constant that says `MAX` bounds something; each is on the page of limits."""
    listed = {(module, name) for module, name, _ in BOUNDING_CONSTANTS}
    source = ROOT / "src"
    for file in source.rglob("*.py"):
        module = ".".join(file.relative_to(source).with_suffix("").parts)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Name) and target.id.endswith("_MAX"):
                    assert (module, target.id) in listed, f"{module}.{target.id} bounds something"


def test_every_bounding_setting_is_listed():
    for path, _ in fields(BoxSettings):
        if path.split(".")[-1].endswith(("_max", "_max_bytes", "_max_chars", "_mib", "_max_s")):
            assert path in BOUNDING_SETTINGS


def test_every_error_code_that_is_raised_has_a_status():
    """A code without a line in the table would be answered as a defect of ours."""
    inside = {"internal", "rejected", "ticket-error", "port-taken", "abandoned"}
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            for step in node.body:
                match step:
                    case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=code)):
                        assert code in STATUS or code in inside, f"{file.name}: {node.name}"


def test_the_page_of_http_names_every_part_and_header():
    text = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    for part in [*headers.PARTS, "handle"]:
        assert f"| `{part}` |" in text
    for name in ("SERVER_TIMING", "RETRY_AFTER", "RETRY_AFTER_MS", "X_CACHE", "X_BATCH_SIZE"):
        assert f"`{getattr(headers, name)}`" in text
    for name in ("X_DEADLINE_MS", "X_API_KEY"):
        assert f"`{getattr(headers, name)}`" in text
