"""`duly docs`: files go in and out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.cli.shared import ROOT, DocumentId, IntoFolder, folder_id, run, visitor
from duly.apps.documents.cli.uploads import kept
from duly.apps.documents.elements import Engine
from duly.cli.exit_codes import exit_code
from duly.cli.options import ActorName, AppName, AsJson, Org
from duly.cli.output import Columns, print_json, print_table
from duly.core import payload
from duly.core.errors import Conflict, ContractError, Forbidden, LimitExceeded, PayloadRefused

_COLUMNS: Columns = {
    "file": "file",
    "document": "document_id",
    "version": "version",
    "what": lambda one: "new" if one.created else "new version" if one.changed else "there already",
}
Reading = Annotated[
    Literal["fast", "hires", "none"], typer.Option("--engine", help="Who reads it; none for nobody.")
]


_REFUSALS = (ContractError, Conflict, Forbidden, LimitExceeded)
"""What may be wrong with one file, and not with the next."""


@dataclass(frozen=True)
class Uploaded:
    """What became of a file."""

    file: str
    document_id: UUID
    version: int
    created: bool
    changed: bool


@dataclass(frozen=True)
class Refused:
    """A file that was not taken, and why."""

    file: str
    error: str
    code: int


def upload(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", exists=True, dir_okay=False, show_default=False)
    ],
    org: Org,
    folder: IntoFolder = ROOT,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="As in year=2026; may be given again.")
    ] = None,
    document: Annotated[
        UUID | None, typer.Option("--document", help="The file is a new version of this one.")
    ] = None,
    engine: Reading = "fast",
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Keep files as documents, and have them read; what is there already is not kept twice.

    Large files go in parts: after a break, the same command goes on where it was.
    """
    if document is not None and (len(files) > 1 or metadata or folder != ROOT):
        raise typer.BadParameter("a new version is one file, and nothing else", param_hint="--document")
    who, said = visitor(org, actor), facts(metadata)
    reader: Engine | None = None if engine == "none" else engine

    how = {"metadata": said, "document_id": document, "engine": reader}

    async def add(duly: Duly) -> tuple[list[Uploaded], list[Refused]]:
        documents, done, refused = duly.documents, list[Uploaded](), list[Refused]()
        node_id = await folder_id(documents, who, folder)
        for file in files:
            try:
                done.append(Uploaded(str(file), *await kept(documents, who, file, node_id=node_id, **how)))
            except _REFUSALS as error:
                if len(files) == 1:
                    raise
                refused.append(Refused(str(file), str(error), exit_code(error)))
        return done, refused

    done, refused = run(app, add)
    print_json({"documents": done, "refused": refused}) if as_json else print_table(done, _COLUMNS)
    for one in refused:
        typer.echo(f"error: {one.file}: {one.error}", err=True)
    if refused:
        raise typer.Exit(refused[0].code)


def download(
    document: DocumentId,
    org: Org,
    version: Annotated[int | None, typer.Option(min=1, help="Else the current one.")] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Where to; else under its own name, here.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Write the file of a document; one that is there already is not overwritten."""
    who = visitor(org, actor)

    async def save(duly: Duly) -> Path:
        found, chunks = await duly.documents.content(who, document, version)
        # Its name is the last part of a path, never a path.
        path = _place(found.file_name, to)
        await written(path, chunks)
        return path

    path = run(app, save)
    print_json({"document_id": document, "path": str(path)}) if as_json else print(path)


def _place(name: str, to: Path | None) -> Path:
    if to is None:
        return Path(name)
    return to / name if to.is_dir() else to


async def written(path: Path, chunks: AsyncIterator[bytes]) -> None:
    """All of it or nothing."""
    try:
        file = await asyncio.to_thread(path.open, "xb")
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--to") from None
    try:
        with file:
            async for chunk in chunks:
                await asyncio.to_thread(file.write, chunk)
    except BaseException:
        await asyncio.to_thread(path.unlink, missing_ok=True)
        raise


def facts(said: Sequence[str] | None) -> dict[str, Any]:
    """Metadata as they are written on a command line: what is JSON is taken as such, the rest as text."""
    return dict(map(_fact, said or ()))


def _fact(said: str) -> tuple[str, Any]:
    name, equals, value = said.partition("=")
    if not (name and equals):
        raise typer.BadParameter("write it as NAME=VALUE", param_hint="--metadata")
    try:
        return name, payload.parse_payload(value)
    except PayloadRefused:
        return name, value
