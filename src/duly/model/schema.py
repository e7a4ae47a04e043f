"""Tables that an application brings along."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of the database, and the package whose folder `migrations` makes it.

    Its first migration makes it and its table `schema_versions`, as `duly.documents` does.
    """

    name: str
    package: str
