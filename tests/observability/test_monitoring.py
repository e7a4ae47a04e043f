"""The shipped rules and dashboard query only metrics that Duly exports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import uuid
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from duly import Cancel, Duly, Settings, Snooze
from duly.http.application import create_app
from duly.observability import metrics
from tests.http.conftest import caller, key_of
from tests.observability.promql import InvalidExpression, MetricQuery, parse_expression
from tests.worker.working import ONE_ATTEMPT, TWO_ATTEMPTS, claim_and_vanish, lose_all_workers, working

ROOT = Path(__file__).parents[2]
RULES = ROOT / "monitoring" / "prometheus" / "duly.rules.yml"
DASHBOARD = ROOT / "monitoring" / "grafana" / "duly.json"
ADDED = {"instance", "job"}
"""Labels that Prometheus adds to every series."""
_LABEL_VALUES = re.compile(r"label_values\((\w+), (\w+)\)")


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def dashboard() -> list[str]:
    """Return the expressions of all panels."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def queried_metrics() -> list[MetricQuery]:
    """Return the metrics and labels that rules, panels and variables query."""
    expressions = [*(rule["expr"] for rule in rules()), *dashboard()]
    queries = [
        query
        for expression in expressions
        for query in parse_expression(expression.replace("$__rate_interval", "5m"))
    ]
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            match = _LABEL_VALUES.fullmatch(variable["definition"])
            assert match, variable["definition"]
            queries.append(MetricQuery(match[1], frozenset({match[2]})))
    return queries


def exported_labels(text: str) -> dict[str, set[str]]:
    """Return the exported metrics with their labels."""
    labels_by_metric: defaultdict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels_by_metric[sample.name] |= set(sample.labels)
    return dict(labels_by_metric)


def documented() -> set[str]:
    """Return the metric families in the tables of the documentation."""
    page = (ROOT / "docs" / "operate" / "metrics.md").read_text(encoding="utf-8")
    return {name.removesuffix("_total") for name in re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)}


async def run_jobs_and_scrape(app: Duly, org: uuid.UUID, sql: psycopg.Connection[Any]) -> str:
    """Return the metrics of a service after jobs ended in every way, with notifications and webhooks."""

    tries: Counter[str] = Counter()

    @app.job("monitored.well")
    async def well() -> Snooze | None:
        tries["well"] += 1
        return Snooze(0.001) if tries["well"] == 1 else None

    @app.job("monitored.bad", retry=TWO_ATTEMPTS)
    async def bad() -> None:
        raise OSError("no")

    @app.job("monitored.stopped")
    async def stopped() -> Cancel:
        return Cancel("enough")

    @app.job("monitored.lost", retry=ONE_ATTEMPT)
    async def lost() -> None: ...

    gone = await lost.enqueue()
    await claim_and_vanish(app, gone.job_id)
    await lose_all_workers(app, sql)
    async with working(app):
        for job in (well, bad, stopped):
            await (await job.enqueue()).wait(60)
        metrics.count_fenced("monitored.lost", "q:default")
        metrics.count_webhook_deliveries("failed")
        metrics.count_notifications("email", "failed")
        metrics.count_alerts("queue_depth", "fired")
        sql.execute(
            "insert into duly.alerts (org_id, alert_id, kind, target, severity, summary) "
            "values (%s, gen_random_uuid(), 'queue_depth', 'q:default', 'warning', '')",
            [org],
        )
        async with caller(create_app(app), await key_of(app, org)) as http:
            assert (await http.get("/v1/jobs")).status_code == 200
            return (await http.get("/metrics")).text


async def test_rules_and_dashboard_query_only_existing_metrics(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    text = await run_jobs_and_scrape(app, acting, sql)
    labels_by_metric, queries = exported_labels(text), queried_metrics()
    assert len(queries) > 60
    unknown = {query.metric for query in queries if query.metric not in labels_by_metric}
    assert not unknown
    undocumented = {family.name for family in text_string_to_metric_families(text)} - documented()
    assert not {name for name in undocumented if not name.startswith(("python_", "process_"))}
    missing = {
        (query.metric, label)
        for query in queries
        for label in query.labels - labels_by_metric[query.metric] - ADDED
    }
    assert not missing


def test_every_rule_has_a_summary_severity_action_and_delay() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
        assert re.fullmatch(r"[1-9]\d*m", rule["for"]), rule["alert"]


def test_rules_have_the_thresholds_of_dulys_own_alerts() -> None:
    expressions = {rule["alert"]: rule["expr"] for rule in rules()}
    settings = Settings.load(environ={})
    waits = {*settings.alert_waits.values(), settings.alert_wait}
    assert _limits(expressions["DulyQueueDeep"]) == [settings.alert_queue_depth]
    assert _limits(expressions["DulyManyDeadLetters"]) == [settings.alert_dead_per_hour]
    assert _limits(expressions["DulyRelayLags"]) == [settings.alert_relay_lag.total_seconds()]
    assert set(_limits(expressions["DulyOldestJobWaits"])) == {wait.total_seconds() for wait in waits}
    [no_worker] = [rule for rule in rules() if rule["alert"] == "DulyNoWorker"]
    assert float(no_worker["for"].removesuffix("m")) * 60 == settings.alert_no_worker.total_seconds()


def _limits(expression: str) -> list[float]:
    return [float(number) for number in re.findall(r"> (\d+)", expression)]


def test_the_dashboard_can_be_imported_as_it_is() -> None:
    dashboard_json = json.loads(DASHBOARD.read_text())
    ids = [panel["id"] for panel in dashboard_json["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in dashboard_json["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
        assert all(target["expr"] for target in panel["targets"]), panel["title"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("max by (queue) (duly_queue_depth) > 100", [("duly_queue_depth", {"queue"})]),
        ('sum(rate(a{b="c", d=~"e|f"}[5m])) by (g)', [("a", {"b", "d", "g"})]),
        ("histogram_quantile(0.9, sum by (le, x) (rate(b_bucket[1h30m])))", [("b_bucket", {"le", "x"})]),
        ("a / on (i) sum by (k) (b)", [("a", {"i"}), ("b", {"k", "i"})]),
        ("-(a + 2) * topk(3, b)", [("a", set()), ("b", set())]),
    ],
)
def test_promql_expressions_are_parsed(expression: str, expected: list[tuple[str, set[str]]]) -> None:
    assert [(query.metric, set(query.labels)) for query in parse_expression(expression)] == expected


@pytest.mark.parametrize(
    "text", ["sum(", "a{b}", "nonsense(a)", "a b", "rate(a[5])", "a ? b", "sum by (x (a)"]
)
def test_invalid_promql_is_refused(text: str) -> None:
    with pytest.raises(InvalidExpression):
        parse_expression(text)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_the_rules() -> None:
    process = subprocess.run(
        ["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
