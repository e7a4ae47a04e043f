"""python -m tests.chaos --seed N --minutes M: exit 0 only if every promise holds, with evidence."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from duly.embedded.directories import EmbeddedDatabaseError
from duly.testing.history.promises import check
from tests.chaos.history import collect
from tests.chaos.mutant import find
from tests.chaos.plan import KINDS, make_plan
from tests.chaos.postgres import Missing, Pair
from tests.chaos.run import Report, Run, perform
from tests.chaos.verdict import Judgement

SKIPPED = 77
"""The exit code if a program that a run needs is missing."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev chaos", description="Hurt a cluster, and check its promises."
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same faults")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long the faults last")
    parser.add_argument("--rate", type=float, default=75.0, help="jobs a second, of all clients")
    parser.add_argument("--only", default="", help=f"kinds of faults, by commas: {', '.join(KINDS)}; or none")
    parser.add_argument("--plan", action="store_true", help="print the faults, and do nothing")
    parser.add_argument(
        "--keep", type=Path, help="a new directory for the logs; else they are kept on failure"
    )
    parser.add_argument("--mutant", default="", help="words of a seeded bug's name, to see it caught")
    return parser.parse_args()


def _kinds(only: str) -> tuple[str, ...]:
    if only == "none":
        return ()
    named = tuple(only.split(",")) if only else KINDS
    unknown = set(named) - set(KINDS)
    if unknown:
        sys.exit(f"--only: no such fault: {min(unknown)} (one of {', '.join(KINDS)}, none)")
    return named


def _home(keep: Path | None) -> Path:
    if keep is None:
        home = Path(tempfile.mkdtemp(prefix="duly-chaos-"))
    else:
        home = keep.absolute()
        home.mkdir(parents=True)
    home.chmod(0o711)  # the server's account needs to traverse it
    return home


def main() -> int:
    options = arguments()
    plan = make_plan(options.seed, options.minutes * 60, _kinds(options.only))
    if options.mutant:
        find(options.mutant)
    if options.plan:
        print("\n".join(map(str, plan)))
        return 0
    home, begun = _home(options.keep), time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {text}", flush=True)

    print(f"seed {options.seed}, {options.minutes:g} minutes; logs in {home}", flush=True)
    run = Run(home, options.seed, options.minutes * 60, options.rate, plan, tell, options.mutant)
    try:
        judgement = asyncio.run(_judged(run))
    except (Missing, EmbeddedDatabaseError) as missing:
        print(f"skipped: {missing}")
        shutil.rmtree(home)
        return SKIPPED
    except BaseException as error:
        print(f"the run broke: {error!r}\n{_again(options)}\nlogs are kept in {home}", flush=True)
        raise
    print(f"\n{judgement}\ntotal            {time.monotonic() - begun:.0f} s", flush=True)
    return _end(options, home, judgement)


async def _judged(run: Run) -> Judgement:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    found: list[Judgement] = []

    def judge(pair: Pair, report: Report) -> None:
        history = collect(run.home, pair, run.plan)
        found.append(Judgement(history, check(history), report, run.home))

    found_report = await perform(run, judge)
    found[0].report = found_report
    return found[0]


def _end(options: argparse.Namespace, home: Path, judgement: Judgement) -> int:
    if not judgement.complaints:
        if options.keep is None:
            shutil.rmtree(home, ignore_errors=True)
        return 0
    judgement.dump()
    print(f"\n{judgement.evidence()}\n\n{_again(options)}\nlogs are kept in {home}", flush=True)
    return 1


def _again(options: argparse.Namespace) -> str:
    words = ["./dev", "chaos", "--seed", f"{options.seed}", "--minutes", f"{options.minutes:g}"]
    words += ["--rate", f"{options.rate:g}", *(["--only", options.only] if options.only else [])]
    words += ["--mutant", options.mutant] if options.mutant else []
    return f"again: {shlex.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
