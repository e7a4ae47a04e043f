"""Measure the cost of logs, metrics and events: the same jobs with and without them, alternately.

No setting turns all of this off, so the variants are built here. `bare` has no logs, no metrics and no
events, which are the audit trail of jobs. `events` has the events. `all` is the product: events, metrics in
shared files as with `duly worker --metrics-port`, JSON lines at INFO in a file. `talking` has handlers that
log one line each.
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

from observe.arms import ARMS, work
from observe.report import as_text, summed_up, write
from observe.rounds import measure

_OPTIONS = {"shared_buffers": "256MB", "max_wal_size": "4GB", "checkpoint_timeout": "30min"}


async def run(chosen: argparse.Namespace) -> dict[str, Any]:
    """Run all rounds and summarize them."""
    with open_bench_server(_OPTIONS) as bench_server:
        found = await measure(bench_server, chosen.jobs, chosen.rounds, chosen.warm_ups)
        server = bench_server.version
    about = {"server": server, "jobs": chosen.jobs, "rounds": chosen.rounds}
    return {**about, **found, **summed_up(found["rates"])}


def main() -> int:
    """Measure, print, write; fail if logs, metrics and events together cost more than 15 %."""
    arguments = argparse.ArgumentParser(prog="observe", description=__doc__)
    arguments.add_argument("--jobs", type=int, default=10_000, help="of one drain")
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--warm-ups", type=int, default=1, help="rounds before, which do not count")
    arguments.add_argument("--json", type=Path, help="write the figures to this file")
    arguments.add_argument("--out", type=Path, help="write a page to this folder")
    arguments.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.work:
        name, url, blobs = chosen.work
        asyncio.run(work(ARMS[name], url, blobs, chosen.jobs))
        return 0
    figures = asyncio.run(run(chosen))
    print(as_text(figures))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    if chosen.out:
        write(figures, chosen.out)
    return 0 if figures["overhead"]["logs, metrics and events"]["middle"] < 0.15 else 1


if __name__ == "__main__":
    sys.exit(main())
