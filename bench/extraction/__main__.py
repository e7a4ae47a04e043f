"""Files of all kinds, read by the engines that run here: how they end, how fast, how well.

    ./dev bench extraction [directory] [--engine fast] [--pdftotext program] [--scans 4]

The directory holds real files; beside them come damaged copies, and those of `hostile`. Every file has to end
with its text or with a code that is known. The words of PDF are compared with those of pdftotext, if there is
one; those of pages that were turned into scans with the text of the page they were made of.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.extraction.hostile import HOSTILE, damaged
from bench.extraction.likeness import f1, pdftotext, scans
from bench.extraction.trial import Trial, table, tried

from duly.documents.engines.limits import Limits

_KINDS = """
bin bmp csv doc docx eml gif htm html jpeg jpg md msg odp ods odt pdf png ppt pptm pptx rtf tif tiff txt webp
xls xlsm xlsx xml zip
"""
_TARGET = 0.95


async def main() -> int:
    """Read everything, print what became of it."""
    chosen = _arguments()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        real = list(_files(chosen.directory)) if chosen.directory else []
        trials = [await tried(path, chosen.engine, Limits()) for path in real]
        print(f"{len(real)} real files, engine {chosen.engine}\n{table(trials)}\n")
        failed = [t for t in trials if not t.is_known]
        failed += await _damaged(real, folder, chosen) + await _hostile(folder, chosen)
        good = _compared(trials, chosen)
        good &= await _scanned([t.path for t in trials if t.kind == "application/pdf"], folder, chosen)
    for trial in failed:
        print(f"NOT AS IT SHOULD: {trial.path.name} ended with {trial.outcome}")
    return 0 if good and not failed else 1


async def _damaged(real: Sequence[Path], folder: Path, chosen: argparse.Namespace) -> list[Trial]:
    """Some of the files, cut off or with bytes changed: those that end neither with text nor with a code."""
    trials = []
    for seed, path in enumerate(real[:: chosen.every]):
        if data := path.read_bytes():
            copy = folder / path.name
            copy.write_bytes(damaged(data, seed))
            trials.append(await tried(copy, chosen.engine, Limits()))
            copy.unlink()
    print(f"{len(trials)} damaged files\n{table(trials)}\n")
    return [t for t in trials if not t.is_known]


async def _hostile(folder: Path, chosen: argparse.Namespace) -> list[Trial]:
    """Those that did not end with the code that they should."""
    trials, wrong = [], []
    for name, (make, code) in HOSTILE.items():
        path = folder / name
        path.write_bytes(make())
        trials.append(await tried(path, chosen.engine, Limits()))
        path.unlink()
        if trials[-1].outcome != code:
            wrong.append(trials[-1])
    print(f"{len(trials)} hostile files, {len(trials) - len(wrong)} as they should\n{table(trials)}\n")
    return wrong


def _compared(trials: Sequence[Trial], chosen: argparse.Namespace) -> bool:
    """Whether the words of the PDF are those that pdftotext finds."""
    if not chosen.pdftotext:
        print("no pdftotext: words were not compared")
        return True
    read = [t for t in trials if t.kind == "application/pdf" and t.outcome == "ok" and t.text.strip()]
    alike = {t.path: f1(t.text, pdftotext(chosen.pdftotext, t.path)) for t in read}
    if not alike:
        return True
    for path, value in sorted(alike.items(), key=lambda item: item[1])[: chosen.worst]:
        print(f"  {value:.3f}  {path.name}")
    middle = statistics.median(alike.values())
    print(f"words of {len(alike)} PDF against pdftotext: median F1 {middle:.3f}\n")
    return middle >= _TARGET


async def _scanned(paths: Sequence[Path], folder: Path, chosen: argparse.Namespace) -> bool:
    """Whether the words of pictures of pages are those of the pages."""
    values = []
    for path in paths if chosen.pdftotext else ():
        if not re.search(chosen.german, str(path)):
            continue
        for number, scan in scans(path, folder, chosen.scans):
            trial = await tried(scan, "hires", Limits())
            values.append(f1(trial.text, pdftotext(chosen.pdftotext, path, number)))
            print(f"  {values[-1]:.3f}  {path.name} page {number}, {trial.seconds:.1f} s")
    if not values:
        return True
    print(f"words of {len(values)} scanned pages: median F1 {statistics.median(values):.3f}")
    return statistics.median(values) >= _TARGET


def _files(directory: Path) -> Iterator[Path]:
    kinds = {f".{kind}" for kind in _KINDS.split()}
    return (p for p in sorted(directory.rglob("*")) if p.is_file() and p.suffix.lower() in kinds)


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(prog="extraction", description=__doc__)
    arguments.add_argument("directory", type=Path, nargs="?")
    arguments.add_argument("--engine", choices=("fast", "hires"), default="fast")
    arguments.add_argument(
        "--pdftotext", default=shutil.which("pdftotext"), help="the program to compare with"
    )
    arguments.add_argument("--scans", type=int, default=4, help="pages of each PDF that are scanned")
    arguments.add_argument("--german", default=r"[/.-]de[/.-]", help="scan only PDF whose path has this")
    arguments.add_argument("--every", type=int, default=4, help="of how many files one is damaged, too")
    arguments.add_argument("--worst", type=int, default=5, help="how many of the least alike are shown")
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
