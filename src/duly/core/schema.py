"""Database schemas of applications."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of the database, and the package whose folder `migrations` creates it.

    The first migration creates the schema and its table `schema_versions`, as in `duly.apps.documents`.
    """

    name: str
    package: str
