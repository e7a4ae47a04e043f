"""What ended processes have counted stays counted, in two files instead of some for each of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from prometheus_client import mmap_dict, multiprocess

# The library says nothing of its types here.
_files: Any = mmap_dict
_processes: Any = multiprocess
_KINDS = ("counter", "histogram")
_GONE = "0"
"""In the place of the process number: no process has this one."""


def fold(folder: Path) -> None:
    """Add up the files of processes that are no more. Nobody may read the folder meanwhile."""
    for pid in {_pid(file) for file in folder.glob("*.db")} - {_GONE}:
        if not _lives(int(pid)):
            _processes.mark_process_dead(pid, str(folder))
            for kind in _KINDS:
                _add(folder / f"{kind}_{pid}.db", folder / f"{kind}_{_GONE}.db")
            (folder / f"{pid}.sock").unlink(missing_ok=True)


def _pid(file: Path) -> str:
    return file.stem.rpartition("_")[2]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _add(file: Path, to: Path) -> None:
    if not file.exists():
        return
    files = [str(one) for one in (file, to) if one.exists()]
    sums = _processes.MultiProcessCollector.merge(files, accumulate=False)
    kept = _files.MmapedDict(str(to))
    for metric in sums:
        for sample in metric.samples:
            labels = sample.labels
            key = _files.mmap_key(
                metric.name, sample.name, list(labels), list(labels.values()), metric.documentation
            )
            kept.write_value(key, sample.value, 0.0)
    kept.close()
    file.unlink()
