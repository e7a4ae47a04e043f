"""The tables show medians and ratios of every system."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from bench.peers import report
from bench.peers.catalogue import SYSTEMS
from bench.peers.chart import PANELS, chart

from tests.bench.made import results

SVG = "{http://www.w3.org/2000/svg}"


def row(table: str, title: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {title} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_cell_is_the_median_of_the_rounds_with_the_multiple_of_ours() -> None:
    run = results()
    run["systems"]["duly"]["rounds"] = [{"drain_1": 15_000}, {"drain_1": 15_000}, {"drain_1": 27_000}]
    run["systems"]["pgqueuer"]["rounds"] = [{"drain_1": 6_000}, {"drain_1": 7_500}, {"drain_1": 9_000}]
    assert row(report.rates(run), "PgQueuer")[5] == "7,500 (2.50)"


def test_a_measure_has_intervals_and_costs_beside_the_median() -> None:
    run = results()
    for number in range(6):
        costs = {"drain_1_client_us": 60.0, "drain_1_server_us": 40.0, "drain_1_wal": 1_800.0}
        run["systems"]["pgqueuer"]["rounds"][number] = {"drain_1": 7_000 + 100 * number, **costs}
    run["systems"]["pgqueuer"]["busy"][2] = {"drain_1": 1.4}
    part = report.details(run).partition("### Drain, 1 process")[2].partition("###")[0]
    assert row(part, "PgQueuer") == [
        "PgQueuer",
        "7,250*",
        "7,000 to 7,500",
        "2.07",
        "2.00 to 2.14",
        "60",
        "40",
        "1,800",
        "6, 1 busy",
    ]
    assert row(part, "Duly")[1:5] == ["15,000", "15,000 to 15,000", "-", "-"]


def test_a_target_is_listed_with_its_interval() -> None:
    line = "- [x] drain with one process at least 1.5 x PgQueuer: reached; ratio 1.88, interval 1.88 to 1.88"
    assert line in report.targets(results())


def test_results_of_an_older_run_are_shown() -> None:
    folder = Path(__file__).parents[2] / "docs" / "benchmarks"
    for file in ("all.json", "drains.json", "fastest.json"):
        text = report.markdown(json.loads((folder / file).read_text()))
        assert "drain with one process at least 1.5 x PgQueuer" in text


def test_the_fastest_comes_first_and_those_without_figures_last() -> None:
    titles = [line.split("|")[1].strip() for line in report.rates(results()).splitlines()[2:]]
    assert titles[:3] == ["Duly", "pg-boss", "graphile-worker"]
    assert len(titles) == len(SYSTEMS)


def test_a_system_that_could_not_run_is_listed_with_the_reason() -> None:
    assert row(report.rates(results()), "Celery")[2] == "not run: no such thing here"
    assert "- Celery: not run: no such thing here" in report.failures(results())


def test_a_failed_measure_is_listed_with_the_reason() -> None:
    run = results()
    run["systems"]["pgqueuer"]["failures"] = {"latency": "round 2: it hung"}
    assert "- PgQueuer, latency: round 2: it hung" in report.markdown(run)


def test_a_figure_may_be_a_text_instead_of_a_number() -> None:
    text = "not run: would take about 9 min"
    table = report.endurance(results(pgqueuer={"backlog_1000000": text, "recovery_s": "lost 3 of 100"}))
    assert row(table, "PgQueuer")[1::2] == [text, "lost 3 of 100"]


def test_the_files_of_a_report_are_written(tmp_path: Path) -> None:
    report.write(results(), tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "chart.svg",
        "report.md",
        "results.json",
    ]
    assert "](chart.svg)" in (tmp_path / "new" / "report.md").read_text()


def test_the_chart_is_well_formed_and_names_every_system_in_every_panel() -> None:
    texts = [text.text for text in ElementTree.fromstring(chart(results())).iter(f"{SVG}text")]
    assert {system.title: texts.count(system.title) for system in SYSTEMS} == {
        system.title: len(PANELS) for system in SYSTEMS
    }


def test_a_faster_system_has_a_longer_bar() -> None:
    bars = ElementTree.fromstring(chart(results())).iter(f"{SVG}rect")
    widths = [float(bar.attrib["width"]) for bar in list(bars)[:3]]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3


def test_a_chart_without_figures_is_well_formed() -> None:
    run = results()
    for entry in run["systems"].values():
        entry["rounds"] = []
    assert len(list(ElementTree.fromstring(chart(run)).iter(f"{SVG}rect"))) == 0
