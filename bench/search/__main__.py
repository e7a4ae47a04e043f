"""Measure the quality of search, and its speed among many passages of the org and of other orgs.

The German questions come from a file that is not part of this repository; the English ones are derived from
the running Python's standard library. `--chunks 0` measures only the quality on small sets.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures.server import open_bench_server

from duly import Duly
from duly.apps.documents.schema import SCHEMA
from duly.apps.documents.search import compounds
from duly.apps.documents.search.models import Filters
from duly.db.migrate import migrate
from search.fill import copy, fill, in_bulk, make_org, restrict_folder
from search.filler import Maker
from search.measure import ask, ask_seed, compare, put, seed_index
from search.report import as_text, write
from search.sets import Questions, english, german

# A quarter of the memory, as usual for a dedicated server.
_BUFFERS = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30 // 4
_OPTIONS = {"shared_buffers": f"{_BUFFERS or 1}GB", "max_wal_size": "16GB", "checkpoint_timeout": "30min"}
_NEIGHBOUR = 100_000
"""Passages of one other org."""


async def run(chosen: argparse.Namespace) -> dict[str, Any]:
    """Run all variants."""
    sets = {"German": german(chosen.data), "English": english()}
    figures: dict[str, Any] = {"arms": {}, "hanta": compounds.is_installed(), "terms": 0}
    figures |= {"chunks": chosen.chunks, "others": chosen.others}
    with open_bench_server(_OPTIONS) as server:
        url = server.create("documents")
        migrate(url, SCHEMA)
        figures["server"] = f"{server.version} with {_OPTIONS['shared_buffers']} of shared_buffers"
        app = Duly(database_url=url, blobs_url=str(server.home / "blobs"), maintenance=False)
        try:
            await _small(app, url, sets, figures)
            if chosen.chunks:
                await _many(app, url, sets["German"], figures)
        finally:
            await app.close()
    return figures


async def _small(app: Duly, url: str, sets: dict[str, Questions], figures: dict[str, Any]) -> None:
    """Measure each set alone in an org."""
    for name, questions in sets.items():
        with psycopg.connect(url, autocommit=True) as conn:
            org = make_org(conn)
        began = time.monotonic()
        positions = await put(app, org, questions.passages)
        figures["published"] = len(positions) / (time.monotonic() - began)
        figures["arms"][name] = await ask(app, org, questions, positions)
        with seed_index(url):
            figures["arms"][f"{name}, seed"] = ask_seed(url, org, questions, positions)
        _tell(figures)


async def _many(app: Duly, url: str, questions: Questions, figures: dict[str, Any]) -> None:
    """Measure a set among many other passages, with other orgs."""
    with psycopg.connect(url, autocommit=True) as conn:
        org = make_org(conn)
        neighbours = [make_org(conn) for _ in range(round(figures["others"] / max(1, figures["chunks"])))]
    began = time.monotonic()
    with in_bulk(url):
        fill(url, org, Maker(questions.passages, seed=1).passages(figures["chunks"]))
        copy(url, org, neighbours)
    figures["rate"] = (figures["chunks"] + figures["others"]) / (time.monotonic() - began)
    positions = await put(app, org, questions.passages)
    figures["arms"]["German, many"] = mine = await ask(app, org, questions, positions)
    shared = await compare(app, org, questions, 100)
    since = Filters(created_from=datetime(2000, 1, 1, tzinfo=UTC))
    figures["arms"]["German, many, filtered"] = await ask(app, org, questions, positions, since)
    restrict_folder(url, org)
    figures["arms"]["German, many, closed"] = await ask(app, org, questions, positions)
    _tell(figures)
    with psycopg.connect(url, autocommit=True) as conn:
        [(figures["terms"],)] = conn.execute(
            "select count(*) from documents.search_terms where org_id = %s", [org]
        ).fetchall()
    with seed_index(url):
        figures["arms"]["German, many, seed"] = ask_seed(url, org, questions, positions)
        seed = ask_seed(url, org, questions, positions, any_word=60)
    figures["arms"]["German, many, seed with OR"] = seed
    figures["shared"] = shared
    figures["ratio"] = ", ".join(f"{seed['ms'][key] / mine['ms'][key]:.1f}" for key in ("p50", "p95"))


def _tell(figures: dict[str, Any]) -> None:
    print(*as_text(figures).splitlines()[: len(figures["arms"]) + 1], sep="\n", file=sys.stderr, flush=True)


def main() -> int:
    """Measure, print, write; fail below an MRR of 0.93 or above 10 ms at p95."""
    arguments = argparse.ArgumentParser(prog="search", description=__doc__)
    arguments.add_argument(
        "--data", type=Path, required=True, help="questions and passages, as XQuAD-de has them"
    )
    arguments.add_argument("--chunks", type=int, default=100_000, help="other passages of the org")
    arguments.add_argument("--others", type=int, default=1_000_000, help="passages of other orgs")
    arguments.add_argument("--without-hanta", action="store_true", help="take no compounds apart")
    arguments.add_argument("--json", type=Path, help="write the figures to this file")
    arguments.add_argument("--out", type=Path, help="write a page to this folder")
    chosen = arguments.parse_args()
    if chosen.without_hanta:
        sys.modules["HanTa.HanoverTagger"] = None  # type: ignore[assignment]
    figures = asyncio.run(run(chosen))
    print(as_text(figures))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    if chosen.out:
        write(figures, chosen.out)
    fast = figures["arms"].get("German, many", {"ms": {"p95": 0.0}})["ms"]["p95"] < 10
    return 0 if fast and figures["arms"]["German"]["mrr"] >= 0.93 else 1


if __name__ == "__main__":
    sys.exit(main())
