"""Extract files of all kinds with the local engines: outcome, speed and quality.

    ./dev bench extraction [directory] [--pdftotext program] [--group books=/books/] [--out folder]

The directory has real files; damaged copies and the files of `hostile` are added. Every file must end with
its text or with a known code. The words of PDF files are compared with those of pdftotext, if it is
installed, and the words of pages rendered as scans with the text of the page. A group is the PDF files
whose path contains a pattern.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.extraction import report
from bench.extraction.hostile import HOSTILE, damaged
from bench.extraction.likeness import f1, pdftotext, scans
from bench.extraction.trial import HEAD, Trial, table, tried

from duly.apps.documents.engines.limits import ReaderLimits

_KINDS = """
bin bmp csv doc docm docx eml gif htm html jpeg jpg md msg odp ods odt otp ots ott pdf png ppt pptm pptx rtf
tif tiff txt webp xls xlsm xlsx xml zip
"""
_TARGET = 0.95
T = TypeVar("T")
R = TypeVar("R")
Likenesses = dict[tuple[str, str], list[tuple[float, float]]]


async def main() -> int:
    """Extract everything and print the outcomes."""
    chosen = _arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = list(_files(chosen.directory)) if chosen.directory else []
        real = await _each(paths, lambda path: tried(path, chosen.engine, ReaderLimits()), chosen.at_once)
        _print_table(f"real files, engine {chosen.engine}", real)
        broken = _print_table("damaged files", await _damaged(paths, folder, chosen))
        made = _print_table("hostile files", await _hostile(folder, chosen))
        likenesses = await _compared(real, folder, chosen)
    rows = report.of_words(likenesses)
    print(report.words(rows))
    wrong = [t for t in (*real, *broken) if not t.is_known]
    wrong += [t for t in made if t.outcome != HOSTILE[t.path.name][1]]
    for trial in wrong:
        print(f"NOT AS IT SHOULD: {trial.path.name} ended with {trial.outcome}")
    if chosen.out:
        every = [*real, *broken, *made]
        longest = max(every, key=lambda t: t.seconds)
        figures = {
            "engine": chosen.engine,
            "every": chosen.every,
            "at_once": chosen.at_once,
            "files": len(every),
            "known": len(every) - len(wrong),
            "memory": max(t.memory for t in real) >> 20,
            "memory_hostile": max(t.memory for t in made) >> 20,
            "memory_limit": ReaderLimits().memory >> 20,
            "seconds": sum(t.seconds for t in every),
            "slowest": longest.seconds,
            "longest": f"{len(longest.pages):,} pages",
            "sources": _sources(paths),
            "made": len(made),
            "right": sum(t.outcome == HOSTILE[t.path.name][1] for t in made),
            "real": table(real),
            "damaged": table(broken),
            "hostile": table(made),
            "words": rows,
        }
        report.write(figures, chosen.out)
    return 0 if not wrong and all(float(row[3]) >= _TARGET for row in rows if row[1] != "lying") else 1


def _print_table(what: str, trials: Sequence[Trial]) -> Sequence[Trial]:
    print(f"{len(trials)} {what}\n{report.as_text(HEAD, table(trials))}\n", flush=True)
    return trials


async def _each(things: Sequence[T], work: Callable[[T], Awaitable[R]], at_once: int) -> list[R]:
    """Run a few at a time and yield the results in order."""
    room = asyncio.Semaphore(at_once)

    async def one(thing: T) -> R:
        async with room:
            return await work(thing)

    return await asyncio.gather(*(one(thing) for thing in things))


async def _tried(path: Path, chosen: argparse.Namespace) -> Trial:
    return await tried(path, chosen.engine, ReaderLimits())


async def _damaged(real: Sequence[Path], folder: Path, chosen: argparse.Namespace) -> list[Trial]:
    """Yield some of the files, truncated or with changed bytes."""
    trials = []
    for seed, path in enumerate(real[:: chosen.every]):
        if data := path.read_bytes():
            copy = folder / path.name
            copy.write_bytes(damaged(data, seed))
            trials.append(await _tried(copy, chosen))
            copy.unlink()
    return trials


async def _hostile(folder: Path, chosen: argparse.Namespace) -> list[Trial]:
    trials = []
    for name, (make, _) in HOSTILE.items():
        path = folder / name
        path.write_bytes(make())
        trials.append(await _tried(path, chosen))
        path.unlink()
    return trials


async def _compared(trials: Sequence[Trial], folder: Path, chosen: argparse.Namespace) -> Likenesses:
    """Compare the words of PDF files, and of their pages rendered as images, with those of pdftotext."""
    found: Likenesses = {}
    if not chosen.pdftotext:
        print("no pdftotext: words were not compared")
        return found
    read = [t for t in trials if t.kind == "application/pdf" and t.outcome == "ok" and t.text.strip()]
    for name, pattern in (option.split("=", 1) for option in chosen.group or ["all=."]):
        group = [t for t in read if re.search(pattern, str(t.path))]
        for trial in group:
            value = f1(trial.text, pdftotext(chosen.pdftotext, trial.path))
            found.setdefault((name, "text"), []).append((value, trial.seconds / len(trial.pages)))
            print(f"  {value:.3f}  {trial.path.name}")
        scanned = partial(_scanned, folder=folder, chosen=chosen)
        turns = [(trial.path, 90 * (at % 3 + 1)) for at, trial in enumerate(group)]
        for likenesses in await _each(turns, scanned, chosen.at_once):
            for what, likeness in likenesses:
                found.setdefault((name, what), []).append(likeness)
    return found


async def _scanned(
    turn: tuple[Path, int], folder: Path, chosen: argparse.Namespace
) -> list[tuple[str, tuple[float, float]]]:
    """Yield some pages as scans; the first one also sideways or upside down."""
    found, (path, angle) = [], turn
    for at, (number, scan) in enumerate(scans(path, chosen.scans)):
        reference = pdftotext(chosen.pdftotext, path, number)
        for what, degrees in (("scans", 0), ("lying", angle))[: 1 if at else 2]:
            scan.rotate(degrees, expand=True).save(picture := folder / f"{path.stem}.png")
            trial = await tried(picture, "hires", ReaderLimits())
            found.append((what, (f1(trial.text, reference), trial.seconds)))
            print(
                f"  {found[-1][1][0]:.3f}  {path.name} page {number}, {what}, {trial.seconds:.1f} s",
                flush=True,
            )
    return found


def _files(directory: Path) -> Iterator[Path]:
    kinds = {f".{kind}" for kind in _KINDS.split()}
    return (p for p in sorted(directory.rglob("*")) if p.is_file() and p.suffix.lower() in kinds)


def _sources(paths: Sequence[Path]) -> str:
    counted = Counter(path.parent.name for path in paths)
    return ", ".join(f"{name} {count}" for name, count in sorted(counted.items()))


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(prog="extraction", description=__doc__)
    arguments.add_argument("directory", type=Path, nargs="?")
    arguments.add_argument("--engine", choices=("fast", "hires"), default="fast")
    arguments.add_argument(
        "--pdftotext", default=shutil.which("pdftotext"), help="the program to compare with"
    )
    arguments.add_argument(
        "--group", action="append", default=[], help="a name, and what the path of a PDF has"
    )
    arguments.add_argument(
        "--scans", type=int, default=4, help="pages of each PDF of a group that are scanned"
    )
    arguments.add_argument("--every", type=int, default=4, help="of how many files one is damaged, too")
    arguments.add_argument("--at-once", type=int, default=1, help="files that are read at the same time")
    arguments.add_argument("--out", type=Path, help="the folder for the page")
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
