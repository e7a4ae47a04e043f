"""Runs the supervisor by itself: `python -P -S launch.py <plan> <lock descriptor>`.

Importing the package `duly` would load all of it: slow to start, large to keep for hours, and if any of it
started a thread, the kernel would refuse the namespace that root needs. An empty package of the same name
replaces it.
"""

import sys
from pathlib import Path
from types import ModuleType


def main() -> None:
    """Install the empty package, and run the supervisor."""
    stand_in = ModuleType("duly")
    stand_in.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["duly"] = stand_in
    from duly.embedded import supervisor

    supervisor.main(sys.argv[1], int(sys.argv[2]))


if __name__ == "__main__":
    main()
