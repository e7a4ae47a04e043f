"""The command line: parsing and showing, and nothing else. What is done, the lower floors do.

A file per group of commands. `program` puts them together and turns errors into exit codes; `application`
finds the application and runs one piece of work with it; `show` prints tables or JSON; `supervisor` keeps
workers alive.
"""

from duly.cli.program import main

__all__ = ["main"]
