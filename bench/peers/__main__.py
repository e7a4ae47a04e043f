"""Compare Duly with other queues: ./dev bench peers [--only a,b] [--jobs 10000] [--out DIR]."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path


def main(words: list[str] | None = None) -> None:
    """Measure, and print the tables."""
    # Started by its path, the program has its own folder instead of the project's in sys.path.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from bench.peers import report
    from bench.peers.bench import Sizes
    from bench.peers.catalogue import chosen
    from bench.peers.measures import MEASURES
    from bench.peers.runner import Plan, Run, keeper

    def names(text: str) -> list[str]:
        return [word for word in text.split(",") if word]

    arguments = argparse.ArgumentParser(prog="bench peers", description=__doc__)
    arguments.add_argument("--rounds", type=int, default=6, help="at least; fewer than 6 give no interval")
    arguments.add_argument("--rounds-max", type=int, default=15, help="at most")
    arguments.add_argument("--within", type=float, default=0.1, help="share by which an interval may differ")
    arguments.add_argument("--quiet-wait", type=float, default=20.0, help="seconds to wait for quiet, each")
    arguments.add_argument("--quiet-budget", type=float, default=600.0, help="the same, in the whole run")
    arguments.add_argument("--jobs", type=int, default=10_000)
    arguments.add_argument("--only", type=names, default=[], help="systems, separated by commas")
    arguments.add_argument("--without", type=names, default=[], help="systems to leave out")
    arguments.add_argument("--measures", type=names, default=list(MEASURES), help=", ".join(MEASURES))
    arguments.add_argument("--backlog", type=names, default=["200000", "1000000"], help="sizes; '' for none")
    arguments.add_argument("--limit", type=float, default=120.0, help="seconds a backlog may take, estimated")
    arguments.add_argument("--step-limit", type=float, default=180.0, help="seconds until a step is given up")
    arguments.add_argument("--recovery-limit", type=float, default=60.0, help="seconds to wait for recovery")
    arguments.add_argument("--json", type=Path, help="keep all results in this file")
    arguments.add_argument("--out", type=Path, help="write report.md, chart.svg and results.json here")
    arguments.add_argument("--show", type=Path, help="measure nothing: report on the results in this file")
    options = arguments.parse_args(words)
    if unknown := set(options.measures) - set(MEASURES):
        arguments.error(f"no measure {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}")
    if options.show:
        results = json.loads(options.show.read_text())
    else:
        plan = Plan(
            systems=chosen(options.only, options.without),
            rounds=options.rounds,
            rounds_max=options.rounds_max,
            within=options.within,
            quiet_wait=options.quiet_wait,
            quiet_budget=options.quiet_budget,
            sizes=Sizes(options.jobs, options.step_limit, options.recovery_limit),
            measures=[name for name in MEASURES if name in options.measures],
            backlogs=[int(size) for size in options.backlog],
            backlog_limit=options.limit,
        )
        file = options.json or (options.out / "results.json" if options.out else None)
        # SIGTERM must raise, so that servers and workers are stopped.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
        with tempfile.TemporaryDirectory() as home:
            results = Run(plan, Path(home), keeper(file)).go()
    print(report.markdown(results))
    if options.out:
        report.write(results, options.out)


if __name__ == "__main__":
    main()
