"""What servers say of their own time, provider by provider, from answers as they send them."""

import json
from pathlib import Path

import pytest

from tailrace.latency.declared import read_declared
from tailrace.latency.declares import FAMILIES

GOLDEN = sorted((Path(__file__).parents[1] / "data" / "declared").glob("*.json"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_answer_reads_as_it_must(path: Path) -> None:
    golden = json.loads(path.read_text(encoding="utf-8"))
    declared = read_declared(
        golden.get("headers", {}),
        golden.get("answer"),
        inputs=golden.get("inputs", 1),
        streamed=golden.get("streamed", False),
    )
    assert declared.family == golden["family"]
    found = {name: figure.ns / 1e6 for name, figure in declared.inside.items()}
    assert found == pytest.approx(golden["inside_ms"], abs=1e-6)
    assert all(figure.source == "declared" for figure in declared.inside.values())


def test_every_family_has_a_golden_answer() -> None:
    covered = {json.loads(path.read_text(encoding="utf-8"))["family"] for path in GOLDEN}
    assert covered == {family.name for family in FAMILIES}


def test_every_field_that_is_inside_another_names_one_of_its_family() -> None:
    for family in FAMILIES:
        names = {field.name for field in family.fields}
        assert len(names) == len(family.fields)
        assert {field.inside for field in family.fields} - {None} <= names
        assert family.signs <= names


def test_the_finest_family_becomes_parts_and_the_others_are_kept() -> None:
    """A vLLM behind an Envoy behind LiteLLM: three clocks, one of them tells the queue."""
    headers = {"x-envoy-upstream-service-time": "90", "x-litellm-response-duration-ms": "95.5"}
    answer = {"metrics": {"queue_time_ms": 30, "time_to_first_token_ms": 40}}
    declared = read_declared(headers, answer)
    assert declared.family == "vllm"
    assert set(declared.inside) == {"queue", "prefill"}
    assert declared.said_ms["envoy"] == {"x-envoy-upstream-service-time": 90}
    assert declared.said_ms["litellm"] == {"x-litellm-response-duration-ms": 95.5}


def test_averages_over_many_inputs_are_doubted() -> None:
    headers = {"x-tokenization-time": "1", "x-queue-time": "14", "x-inference-time": "11"}
    one, many = read_declared(headers), read_declared(headers, inputs=8)
    assert one.doubt is None
    assert many.doubt is not None
    assert "averages" in many.doubt
    assert many.inside["queue"].note == "averaged over inputs"
    assert one.resolution_ns == 3_000_000


@pytest.mark.parametrize("value", ["", "soon", "-3", "nan", "inf", "1e400", None, True, [], {}])
def test_what_is_no_duration_is_not_there(value: object) -> None:
    assert read_declared({"openai-processing-ms": value}).family is None  # type: ignore[dict-item]
    assert read_declared({}, {"usage": {"queue_time": value}}).family is None


@pytest.mark.parametrize("answer", [None, [], "text", 3, {"usage": []}, {"metrics": None}])
def test_a_body_of_another_shape_declares_nothing(answer: object) -> None:
    assert read_declared({}, answer).family is None


def test_the_stages_of_a_search_are_its_own_work_and_no_residual() -> None:
    timing = (
        "parse;dur=0.2, embed-wait;dur=0.6, embed;dur=4.8, vector;dur=2.0, keyword;dur=1.1, "
        "fuse;dur=1.2, serialize;dur=0.3, total;dur=10.2"
    )
    found = read_declared({"server-timing": timing}).inside
    assert found["queue"].ns == pytest.approx(0.6e6)
    assert found["infer"].ns == pytest.approx(9.1e6)
