"""Runs the supervisor by itself: `python -P -S launch.py <plan> <lock descriptor>`.

Importing the product's package would bring in all of the product: slow to start, large to keep for
hours, and, should any of it start a thread, the kernel would refuse the namespace that root needs.
An empty package of the same name stands in for it.
"""

import sys
from pathlib import Path
from types import ModuleType


def main() -> None:
    """Put the stand-in in place and hand over to the supervisor."""
    stand_in = ModuleType("duly")
    stand_in.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["duly"] = stand_in
    from duly.devdb import supervisor

    supervisor.main(sys.argv[1], int(sys.argv[2]))


if __name__ == "__main__":
    main()
