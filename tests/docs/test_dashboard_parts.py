"""The dashboard of parts speaks of series that all three servers export, and Prometheus understands it."""

import json
import re
from typing import Any

import pytest
import yaml
from documents import ROOT
from test_dashboard import SUFFIXES, promtool

from tailrace.apps.books.server import SEARCH
from tailrace.apps.review.box import DOORS, LANE
from tailrace.serve.metrics import Metrics
from tailrace.serve.tracer import open_tracer
from tailrace.wire.tracing import Choice

BOARD: dict[str, Any] = json.loads(
    (ROOT / "deploy" / "grafana" / "parts.json").read_text(encoding="utf-8")
)
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
VARIABLES = {variable["name"]: variable for variable in BOARD["templating"]["list"]}
APPS = [option["value"] for option in VARIABLES["app"]["options"]]
DOORS_OF = {LANE: DOORS, "tailrace": ("some-model",), "books": ("some-model", SEARCH)}
FROM_SCRAPING = {"instance"}


def exported(app: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The series of a server with their labels: all are made in the same two places."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    metrics = Metrics(app, DOORS_OF[app])
    open_tracer(Choice(), app, metrics)
    return {
        family.name + suffix: {label for sample in family.samples for label in sample.labels}
        for family in metrics.registry.collect()
        for suffix in SUFFIXES[family.type]
    }


def test_it_offers_the_three_servers():
    assert set(APPS) == set(DOORS_OF)


@pytest.mark.parametrize("app", sorted(DOORS_OF))
def test_every_series_and_label_exists(app, monkeypatch):
    known = exported(app, monkeypatch)
    queries = [VARIABLES[name]["definition"] for name in ("instance", "door")]
    for expression in EXPRESSIONS + queries:
        filled = expression.replace("${app}", app)
        named = re.findall(rf"\b({app}_\w+)(?:\{{([^}}]*)\}})?", filled)
        assert named, expression
        labels: set[str] = set()
        for name, braces in named:
            assert name in known, name
            labels |= known[name] | FROM_SCRAPING
            assert set(re.findall(r"(\w+)\s*=", braces)) <= labels
        for group in re.findall(r"\b(?:by|ignoring) \(([^)]*)\)", filled):
            assert {label.strip() for label in group.split(",")} <= labels


def test_legends_use_labels_that_are_kept():
    for panel in PANELS:
        for target in panel["targets"]:
            groups = re.findall(r"\bby \(([^)]*)\)", target["expr"])
            kept = {label.strip() for group in groups for label in group.split(",")}
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= kept | FROM_SCRAPING


def test_it_shows_shares_tails_the_leader_and_models():
    stacked = [p["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] for p in PANELS]
    assert "percent" in stacked
    text = " ".join(EXPRESSIONS)
    for needed in ("topk (1,", "topk by (door) (1,", "histogram_quantile(0.99,", "traces_lost"):
        assert needed in text


def test_it_can_be_imported():
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert BOARD["id"] is None
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in PANELS)
    assert all(t["datasource"]["uid"] == "${datasource}" for p in PANELS for t in p["targets"])


def filled(app: str) -> list[str]:
    names = {"${app}": app, "$__rate_interval": "1m", "$instance": ".*", "$door": ".*"}
    text = "\0".join(EXPRESSIONS)
    for name, value in names.items():
        text = text.replace(name, value)
    return text.split("\0")


@pytest.mark.parametrize("app", sorted(DOORS_OF))
def test_promtool_accepts_every_expression(app, tmp_path):
    records = [{"record": f"panel:{i}", "expr": e} for i, e in enumerate(filled(app))]
    file = tmp_path / "parts.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": records}]}))
    promtool("check", "rules", str(file))


def test_the_leader_and_the_shares_are_what_they_say(tmp_path):
    """Prometheus itself computes them from two parts of known length."""
    share, _, leader = filled("review")[:3]
    series = 'review_part_seconds_sum{instance="a", door="limited", part="%s"}'
    rules = {"groups": [{"name": "panels", "rules": [{"record": "share", "expr": share}]}]}
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    case = {
        "interval": "15s",
        "input_series": [
            {"series": series % "wait", "values": "0+3x20"},
            {"series": series % "infer", "values": "0+1x20"},
        ],
        "promql_expr_test": [
            {
                "expr": leader,
                "eval_time": "3m",
                "exp_samples": [{"labels": '{part="wait"}', "value": 0.75}],
            },
            {
                "expr": share,
                "eval_time": "3m",
                "exp_samples": [
                    {"labels": '{part="wait"}', "value": 0.2},
                    {"labels": '{part="infer"}', "value": 0.06666666666666667},
                ],
            },
        ],
    }
    test = {"rule_files": [str(tmp_path / "rules.yml")], "tests": [case]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    promtool("test", "rules", str(tmp_path / "test.yml"))
