"""The results in Markdown: medians with ratios to Duly, the targets, and the compared systems."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.figures.numbers import Interval
from bench.peers.bench import SLOTS
from bench.peers.catalogue import OURS
from bench.peers.chart import chart
from bench.peers.figures import (
    busy_rounds,
    by_drain,
    figure,
    interval,
    number,
    numbers,
    ratio,
    ratio_interval,
)
from bench.peers.measures.recovery import JOBS as VICTIMS
from bench.peers.measures.resources import CLIENT, SERVER, WAL
from bench.peers.targets import REACHED, verdicts

RATES = {
    "bulk": "bulk enqueue",
    "single_1": "one by one",
    "single_20": "20 at once",
    "drain_1": "drain, 1 process",
    "drain_2": "drain, 2 processes",
    "sustained": "sustained",
}
LATENCY = {"p50_ms": "idle latency p50, ms"}
COSTS = {
    "p50_ms": ("latency p50, ms", 1),
    "p99_ms": ("latency p99, ms", 1),
    "memory_mb": ("worker memory, MB", 0),
    "ready_s": ("ready after, s", 2),
    "first_s": ("first job after, s", 2),
}
HOW = f"""\
- **Bulk enqueue, one by one, 20 at once**: rate of the calls in one connected process; a tenth of the jobs
  one by one, a fifth by 20 concurrent callers. A system without a bulk call makes concurrent single calls.
- **Drain**: from the start of the first handler until every job is stored as done, so without the first
  claim. A worker may use up to {SLOTS} slots; the number that suits it best is listed below.
- **Sustained**: one process enqueues in bulk while one works, from the first call until all jobs are done.
- **Latency**: from the call of enqueue to the start of the handler, one job at a time, in an idle system.
- **CPU and WAL** are counted from the start signal, after connecting and warming up: the processes that
  enqueue or work, and the whole server; of the latency without the sender. A checkpoint precedes, so the WAL
  includes full page images. **Memory** is that of the drain with one process.
- **Rounds**: in each round the systems take turns at each measure, beginning with another one. A system has
  another round of a measure until the 95 % interval of its ratio is narrow enough. Intervals are those of the
  median, from the order of the rounds alone; as the rounds end when they are narrow, they are a little
  optimistic. A ratio is Duly's figure over the other one's of the same round.
- **Quiet**: a measurement waits until other processes, and other machines that take time of this one, use
  less than a tenth of a core, but not for ever. One that began without that, or during which they used more
  than a quarter of a core, is marked by an asterisk, with the number of such rounds below.
- **Killed worker**: a worker with {VICTIMS} slots runs {VICTIMS} jobs of one second and is killed; another
  one starts at once. Seconds until the last of the running jobs is started again; measured once, in the
  first round. The time-outs are listed below, many of them shorter than the defaults.
- **Durability**: PostgreSQL flushes a commit to disk before it answers, Redis within a second: rates on
  Redis come with a weaker guarantee."""
DETAILS = (
    "system",
    "median",
    "interval",
    "ratio",
    "interval of the ratio",
    "client CPU, µs per job",
    "server CPU, µs per job",
    "WAL, bytes per job",
    "rounds",
)
NONE = "-"
OFF = "off"


def write(results: dict[str, Any], out: Path) -> None:
    """Write the report, the chart and the results."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.md").write_text(markdown(results, with_chart=True))
    (out / "chart.svg").write_text(chart(results))
    (out / "results.json").write_text(json.dumps(results, indent=2) + "\n")


def markdown(results: dict[str, Any], *, with_chart: bool = False) -> str:
    """Return the whole report."""
    sections = [
        "# Duly compared with other job queues",
        summary(results),
        HOW,
        *(["![Jobs per second](chart.svg)"] if with_chart else []),
        "## Jobs per second\n\nIn parentheses: Duly's rate as a multiple of this one.\n\n" + rates(results),
        "## Each measure\n\n" + details(results),
        "## Latency and cost\n\n" + costs(results),
        "## Large backlogs and killed workers\n\n" + endurance(results),
        "## Targets\n\n" + targets(results),
        "## Failures\n\n" + failures(results),
        "## What was compared\n\n" + compared(results),
    ]
    return "\n\n".join(sections) + "\n"


def summary(results: dict[str, Any]) -> str:
    """Describe the setup."""
    machine = results["machine"]
    waited = results.get("quiet", {}).get("waited_s", 0.0)
    return (
        f"{results['jobs']:,} no-op jobs, median of rounds: up to {results['rounds']}, systems in turn; "
        f"waited {waited:.0f} s for quiet; "
        f"{machine['cores']} cores ({machine['architecture']}), Python {machine['python']}, "
        f"PostgreSQL {machine['postgres']}, Redis {machine['redis'] or 'not used'}. "
        "Only ratios within one run are meaningful."
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def rates(results: dict[str, Any]) -> str:
    """Return throughput, with Duly's as a multiple of it."""

    def cell(key: str, name: str) -> str:
        found, times = number(results, key, name), ratio(results, key, name)
        if found is None:
            return NONE
        mark = "*" if busy_rounds(results, key, name) else ""
        return f"{found:,.0f}{mark}" + (f" ({times:.2f})" if times is not None and key != OURS else "")

    rows = []
    for key in by_drain(results):
        entry = results["systems"][key]
        if entry["not_run"] and not entry["rounds"]:
            cells = [f"not run: {entry['not_run']}", *[""] * (len(RATES) - 1)]
        else:
            cells = [cell(key, name) for name in RATES]
        rows.append([entry["title"], entry["store"], *cells])
    return table(["system", "store", *RATES.values()], rows)


def costs(results: dict[str, Any]) -> str:
    """Return latency, memory and start-up."""

    def cell(key: str, name: str, digits: int) -> str:
        found = number(results, key, name)
        return NONE if found is None else f"{found:,.{digits}f}"

    rows = [
        [results["systems"][key]["title"], *(cell(key, name, digits) for name, (_, digits) in COSTS.items())]
        for key in by_drain(results)
    ]
    return table(["system", *(head for head, _ in COSTS.values())], rows)


def details(results: dict[str, Any]) -> str:
    """Return a table for each measure: medians with their intervals, ratios with theirs, and costs."""
    tables = []
    for name, title in (RATES | LATENCY).items():
        rows = [detail(results, key, name) for key in by_drain(results) if numbers(results, key, name)]
        if rows:
            tables.append(f"### {title[0].upper()}{title[1:]}\n\n" + table(DETAILS, rows))
    return "\n\n".join(tables) or "None."


def detail(results: dict[str, Any], key: str, name: str) -> list[str]:
    """Return the row of one system in the table of one measure."""
    digits = 1 if name in LATENCY else 0
    middle, rounds = number(results, key, name), len(numbers(results, key, name))
    times = ratio(results, key, name) if key != OURS else None
    busy = busy_rounds(results, key, name)
    costs = (number(results, key, name + part) for part in (CLIENT, SERVER, WAL))
    return [
        results["systems"][key]["title"],
        f"{middle:,.{digits}f}{'*' if busy else ''}",
        bounds(interval(results, key, name), digits),
        NONE if times is None else f"{times:.2f}",
        NONE if key == OURS else bounds(ratio_interval(results, key, name), 2),
        *(NONE if cost is None else f"{cost:,.0f}" for cost in costs),
        f"{rounds}, {busy} busy" if busy else str(rounds),
    ]


def bounds(found: Interval | None, digits: int) -> str:
    """Return both bounds."""
    return NONE if found is None else f"{found.low:,.{digits}f} to {found.high:,.{digits}f}"


def endurance(results: dict[str, Any]) -> str:
    """Return backlogs, jobs that ran more than once, and recovery."""
    sizes = results["backlogs"]

    def cell(key: str, name: str, form: str) -> str:
        found = figure(results, key, name)
        return NONE if found is None else found if isinstance(found, str) else format(found, form)

    def again(key: str) -> str:
        names = ("ran_again", "ran_again_2", *(f"backlog_{size}_again" for size in sizes))
        found = [value for name in names if (value := number(results, key, name)) is not None]
        return f"{sum(found):,.0f}" if found else NONE

    rows = [
        [
            results["systems"][key]["title"],
            *(cell(key, f"backlog_{size}", ",.0f") for size in sizes),
            again(key),
            cell(key, "recovery_s", ".1f"),
        ]
        for key in by_drain(results)
    ]
    heads = [f"backlog of {size:,}, jobs/s" for size in sizes]
    return table(
        ["system", *heads, "jobs run more than once", "killed worker's jobs restarted after, s"], rows
    )


def targets(results: dict[str, Any]) -> str:
    """Return the checklist."""
    lines = []
    for verdict in verdicts(results):
        mark = "x" if verdict.word == REACHED else " "
        value = f"; ratio {verdict.ratio:.2f}" if verdict.ratio is not None else ""
        value += f", interval {bounds(verdict.interval, 2)}" if verdict.interval else ""
        remark = f" ({verdict.remark})" if verdict.remark else ""
        lines.append(f"- [{mark}] {verdict.text}: {verdict.word}{value}{remark}")
    return "\n".join(lines)


def failures(results: dict[str, Any]) -> str:
    """Return what could not be measured, with the reasons."""
    lines = []
    for entry in results["systems"].values():
        if entry["not_run"]:
            lines.append(f"- {entry['title']}: not run: {entry['not_run']}")
        lines += [f"- {entry['title']}, {name}: {reason}" for name, reason in entry["failures"].items()]
    return "\n".join(lines) or "None."


def compared(results: dict[str, Any]) -> str:
    """Return versions, settings, and what each system stores."""
    rows = []
    for entry in results["systems"].values():
        about = entry["about"]
        rows.append(
            [
                f"{entry['title']} {about.get('version', '')}".strip(),
                entry["language"],
                *(about.get(word, NONE) for word in ("settings", "persists")),
            ]
        )
    machine = results["machine"]
    stores = [
        f"{store}: {', '.join(f'{name} {value or OFF}' for name, value in machine[settings].items())}."
        for store, settings in (("PostgreSQL", "postgres_settings"), ("Redis", "redis_settings"))
        if machine[settings.removesuffix("_settings")]
    ]
    return table(["system", "language", "settings", "what it stores"], rows) + "\n\n" + " ".join(stores)
