"""Compare a status poll with a bare FastAPI route that runs one trivial query on the same pool.

    ./dev bench http [--seconds 4] [--rounds 5] [--callers 16] [--json FILE]

One server process serves both; another process calls them alternately over persistent connections. The ratio
compares rates within one round; the verdict is its median.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import uuid
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from bench.http_polls.calls import rate
from bench.http_polls.served import KINDS, Ready, serve

from duly.testing import DatabaseCluster

TARGET = 0.6


def main() -> None:
    """Measure, print, and write the figures if requested."""
    parser = argparse.ArgumentParser(description="Status polls beside a bare route.")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    figures = asyncio.run(measure(chosen.seconds, chosen.rounds, chosen.callers))
    print(f"median of the ratios: {figures['ratio']:.2f} (target {TARGET})")
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1))


async def measure(seconds: float, rounds: int, callers: int) -> dict[str, Any]:
    """Return the rates of each kind of call, measured alternately."""
    async with _server() as ready:
        found: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for kind in KINDS:
            await rate(ready.port, ready.requests[kind], callers, seconds / 4)  # warm
        for number in range(1, rounds + 1):
            for kind in KINDS:
                found[kind].append(await rate(ready.port, ready.requests[kind], callers, seconds))
            rates = "  ".join(f"{kind} {found[kind][-1]:7,.0f}/s" for kind in KINDS)
            print(f"round {number}: {rates}", flush=True)
    ratios = [ours / bare for ours, bare in zip(found["status"], found["bare"], strict=True)]
    return {"ratio": statistics.median(ratios), "ratios": ratios, "rates": found}


@asynccontextmanager
async def _server() -> Any:
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)  # noqa: PTH101 - the server is another user
        cluster = DatabaseCluster(Path(home) / "server")
        with cluster.fresh() as database:
            parent_end, child_end = multiprocessing.get_context("spawn").Pipe()
            process = multiprocessing.get_context("spawn").Process(
                target=serve, args=(database.direct_url, str(uuid.uuid4()), home, child_end), daemon=True
            )
            process.start()
            ready: Ready = await asyncio.to_thread(parent_end.recv)
            try:
                yield ready
            finally:
                parent_end.send("stop")
                process.join(10)
        cluster.close(wait=True)


if __name__ == "__main__":
    main()
