"""Dashboard and alerts speak of metrics, labels and values that are really exported."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml
from documents import ROOT
from reference_http import label_values, metric_families

DASHBOARD = ROOT / "deploy" / "grafana" / "review.json"
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = PROMETHEUS / "review.rules.yml"

SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}
FROM_SCRAPING = {"instance", "job"}
"""Labels that Prometheus adds to every series."""
LATER = {"outcome": {"model-died", "model-restarting"}}
"""Values that appear with the first such event."""


def exported() -> dict[str, dict[str, set[str]]]:
    """Series by name, each with its labels and the values known from the start."""
    series = {"up": {}}
    for family in metric_families():
        labels = {k: set(v) for k, v in label_values(family).items()}
        for suffix in SUFFIXES[family.type]:
            bounds = {"le": {s.labels["le"] for s in family.samples if "le" in s.labels}}
            series[family.name + suffix] = labels | (bounds if suffix == "_bucket" else {})
    return series


EXPORTED = exported()


def panels() -> list[dict]:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]


def dashboard_expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", [])]


def rules() -> list[dict]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


EXPRESSIONS = dashboard_expressions() + [rule["expr"] for rule in rules()]


def selectors(expression: str) -> list[tuple[str, str]]:
    """The series named in an expression, with what stands in their braces."""
    return re.findall(r"\b((?:review_\w+|up))(?:\{([^}]*)\})?", expression)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_series_label_and_value_exists(expression):
    named = selectors(expression)
    assert named
    known_labels = set(FROM_SCRAPING)
    for name, braces in named:
        assert name in EXPORTED, f"{name} is not exported"
        labels = EXPORTED[name]
        known_labels |= labels.keys()
        for label, operator, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', braces):
            if label in FROM_SCRAPING:
                continue
            assert label in labels, f"{name} has no label {label}"
            for one in value.split("|") if operator in {"=~", "!~"} else [value]:
                assert one in labels[label] | LATER.get(label, set()), f"{name} {label}={one}"
    for grouping in re.findall(r"\bby \(([^)]*)\)", expression):
        assert {label.strip() for label in grouping.split(",")} <= known_labels


def test_legends_use_labels_that_the_expression_keeps():
    for panel in panels():
        for target in panel.get("targets", []):
            kept = {
                label.strip()
                for group in re.findall(r"\bby \(([^)]*)\)", target["expr"])
                for label in group.split(",")
            }
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= kept | FROM_SCRAPING


def test_the_row_and_what_it_must_show():
    rows = [panel["title"] for panel in panels() if panel["type"] == "row"]
    assert rows == ["6단계"]
    shown = " ".join(dashboard_expressions())
    for name in (
        "review_in_progress",
        "review_waiting",
        "review_refused_total",
        "review_waited_seconds_bucket",
        "review_inference_seconds_bucket",
        "review_batch_size_sum",
        "review_cache_total",
        "review_tickets{",
        "review_child_resident_bytes",
        "review_child_limit_bytes",
        "review_child_restarts_total",
    ):
        assert name in shown
    for quantile in ("0.5,", "0.95,", "0.99,"):
        assert f"histogram_quantile({quantile}" in shown


def test_the_dashboard_can_be_imported():
    """Every panel reads from the data source variable, has a place of its own and an id of its own."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert board["id"] is None
    assert board["templating"]["list"][0]["type"] == "datasource"
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    taken = set()
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert all(t["datasource"]["uid"] == "${datasource}" for t in panel["targets"])


def test_every_alert_has_a_test():
    tested = (PROMETHEUS / "review.rules.test.yml").read_text(encoding="utf-8")
    for rule in rules():
        assert f"alertname: {rule['alert']}\n" in tested, rule["alert"]


def promtool(*arguments: str) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        if os.environ.get("TAILRACE_CI"):
            pytest.fail("promtool must be installed here")
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    done = subprocess.run(
        [tool, *arguments], check=False, cwd=PROMETHEUS, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_scrape_example():
    promtool("check", "config", "prometheus.yml")


def test_promtool_accepts_the_rules():
    promtool("check", "rules", "review.rules.yml")


def test_the_rules_fire_when_they_should():
    promtool("test", "rules", "review.rules.test.yml")


def test_promtool_accepts_the_dashboard_expressions(tmp_path):
    filled = [
        e.replace("$__rate_interval", "1m").replace("$instance", ".*")
        for e in dashboard_expressions()
    ]
    records = [{"record": f"panel:{i}", "expr": e} for i, e in enumerate(filled)]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": records}]}))
    promtool("check", "rules", str(file))
