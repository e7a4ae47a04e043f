"""The command line: it parses options, calls services and prints results.

`program` holds all commands and turns errors into exit codes. `command` builds commands from typed functions;
its docstring says how to add one. `options` and `output` are shared by all commands. `app_loader` loads the
application; `serve` and `worker` run it.
"""

from duly.cli.program import main

__all__ = ["main"]
