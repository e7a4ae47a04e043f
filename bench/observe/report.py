"""The results as text and as a page."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_COMPARED = {
    "logs, metrics and events": ("all", "bare"),
    "logs and metrics": ("all", "events"),
    "events": ("events", "bare"),
    "a line of each handler": ("talking", "all"),
}
_HEAD = """# The cost of logs, metrics and events

{jobs:,} no-op jobs of 20 orgs, drained by one process, on {server}; {rounds} rounds after one warm-up, the
variants in another order each time. Written by `./dev bench observe`.

- **bare**: no logs, no metrics, and no events, which are the audit trail of jobs. No setting does that; the
  program removes those rows from the statements.
- **events**: with events; no logs and no metrics.
- **all**: the product as `duly worker --metrics-port` runs it: events, metrics in shared files, JSON lines at
  INFO in a file. Duly logs no line about a successful job.
- **talking**: the same with a handler that logs one line.
"""


def summed_up(rates: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return the median of each variant, and the cost of each addition by the ratios within the rounds."""
    overhead = {}
    for name, (more, less) in _COMPARED.items():
        costs = sorted(1 - a / b for a, b in zip(rates[more], rates[less], strict=True))
        overhead[name] = {"middle": statistics.median(costs), "least": costs[0], "most": costs[-1]}
    middle = {name: statistics.median(values) for name, values in rates.items()}
    return {"middle": middle, "overhead": overhead}


def as_text(figures: Mapping[str, Any]) -> str:
    """Return two tables."""
    lines = [f"drain, jobs/s, median of {figures['rounds']} rounds; and the worker's CPU, µs per job"]
    lines += [
        f"  {name:<26} {rate:>9,.0f} {_cpu(figures, name):>6}" for name, rate in figures["middle"].items()
    ]
    lines += ["cost: median of the rounds (minimum to maximum)"]
    lines += [f"  {name:<26} {_cost(cost)}" for name, cost in figures["overhead"].items()]
    return "\n".join(lines)


def write(figures: Mapping[str, Any], folder: Path) -> None:
    """Write the page."""
    page = _HEAD.format(**figures)
    page += "\n| variant | jobs/s | worker CPU, µs per job |\n|---|---|---|\n"
    rows = figures["middle"].items()
    page += "".join(f"| {name} | {rate:,.0f} | {_cpu(figures, name)} |\n" for name, rate in rows)
    page += "\n| cost of | median of the rounds (minimum to maximum) |\n|---|---|\n"
    page += "".join(f"| {name} | {_cost(cost)} |\n" for name, cost in figures["overhead"].items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "observe.md").write_text(page, encoding="utf-8")


def _cpu(figures: Mapping[str, Any], name: str) -> str:
    return f"{statistics.median(figures['cpu_us'][name]):.1f}"


def _cost(cost: Mapping[str, float]) -> str:
    return f"{cost['middle']:.1%} ({cost['least']:.1%} to {cost['most']:.1%})"
