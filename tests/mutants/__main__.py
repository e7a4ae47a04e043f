"""Run every mutant and print which promise caught it: `./dev mutants [words of a name]`."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from duly.testing import DatabaseCluster
from tests.mutants.registry import MUTANTS, Mutant
from tests.mutants.trial import play


async def tell(cluster: DatabaseCluster, mutant: Mutant) -> bool:
    """Print one line of the table; return whether the expected promise caught the mutant."""
    verdict = await play(cluster, mutant.scenario, mutant.patch)
    caught = mutant.breaks in verdict.broken
    others = " ".join(sorted(verdict.broken - {mutant.breaks}, key=lambda name: int(name[1:])))
    also = f" (and {others})" if others else ""
    by = f"{mutant.breaks}{also}" if caught else "SURVIVED"
    evidence = str(verdict.of(mutant.breaks)[0]) if caught else f"{mutant.breaks} was to be reported"
    print(f"{mutant.name:<64} {by}\n    {evidence[:200]}", flush=True)
    return caught


async def main(words: str) -> int:
    """Run all of them, or those whose names contain these words."""
    logging.disable(logging.CRITICAL)  # the seeded bugs cause log noise
    chosen = [mutant for mutant in MUTANTS if words in mutant.name]
    with tempfile.TemporaryDirectory() as home:
        cluster = DatabaseCluster(Path(home) / "server")
        try:
            caught = [await tell(cluster, mutant) for mutant in chosen]
        finally:
            cluster.close(wait=True)
    print(f"{sum(caught)} of {len(chosen)} caught")
    return 0 if chosen and all(caught) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(" ".join(sys.argv[1:]))))
