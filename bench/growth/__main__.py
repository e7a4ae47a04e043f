"""Measure a claim of 100 and a completion of 100 jobs as backlog, orgs and history grow.

Uses the product's own functions on a durable server and commits each repetition. All databases of an axis are
filled first, then measured alternately; each axis ends with its slope. The axis `costs` measures CPU time and
WAL of every step of a job instead of time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures.server import open_bench_server

from growth.axes import SIZES
from growth.cost_report import costs_as_text, write_costs
from growth.costs import measure_costs
from growth.measure import measure, tell
from growth.report import as_text, write

# WAL for the fills: without it they wait for checkpoints. Everything else is the default.
_OPTIONS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}


_COSTS = "costs"


async def run(chosen: argparse.Namespace) -> dict[str, Any]:
    """Measure, and print each axis when it is done."""
    figures: dict[str, Any] = {
        "sizes": chosen.sizes,
        "repetitions": chosen.repetitions,
        "options": ", ".join(f"{name} {value}" for name, value in _OPTIONS.items()),
        "axes": [],
    }
    with open_bench_server(_OPTIONS) as server:
        figures["server"] = server.version
        for axis in SIZES[chosen.sizes]:
            if chosen.axis and axis.name not in chosen.axis:
                continue
            found = await measure(server, axis, chosen.repetitions, tell)
            figures["axes"].append(found)
            print(as_text(found), flush=True)
        if not chosen.axis or _COSTS in chosen.axis:
            figures["costs"] = await measure_costs(server, chosen.sizes, tell)
            print(costs_as_text(figures["costs"]), flush=True)
    return figures


def main() -> None:
    """Parse the arguments, measure, write."""
    arguments = argparse.ArgumentParser(prog="growth", description=__doc__)
    arguments.add_argument("--sizes", choices=SIZES, default="full", help="how far everything grows")
    arguments.add_argument(
        "--axis",
        action="append",
        choices=[*(axis.name for axis in SIZES["full"]), _COSTS],
        help="only this; may be repeated",
    )
    arguments.add_argument("--repetitions", type=int, default=500)
    arguments.add_argument("--json", type=Path, help="write the figures to this file")
    arguments.add_argument("--out", type=Path, help="write a page and its charts to this folder")
    chosen = arguments.parse_args()
    figures = asyncio.run(run(chosen))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    if chosen.out:
        if figures["axes"]:
            write(figures, chosen.out)
        if _COSTS in figures:
            write_costs(figures, chosen.out)


if __name__ == "__main__":
    main()
