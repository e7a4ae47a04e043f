"""`python -m duly.cli` is `duly`."""

from duly.cli.program import main

main()
