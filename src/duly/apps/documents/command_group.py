"""The group `duly docs`, and what its commands share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.errors import UnknownFolder
from duly.apps.documents.extraction.service import JOB_TYPE
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.cli.app_loader import load_app
from duly.cli.command import Group
from duly.cli.exit_codes import ExitCode
from duly.cli.options import ActorName, AsJson, Depends, Org, acting, argument
from duly.cli.output import Output
from duly.core import payload
from duly.core.errors import ContractError, PayloadRefused, SchemaMismatch
from duly.core.states import Status
from duly.features.jobs.follow import watch_job

if TYPE_CHECKING:
    from duly.apps.documents.service import Documents

ROOT = "/"


def _load(name: str | None, *, job_types: bool = False) -> AbstractAsyncContextManager[Duly]:
    """Load an application, and include documents in it."""
    app = load_app(name, job_types=job_types)
    has_documents = JOB_TYPE in app.registry
    app.include_documents()
    return app if has_documents else _explain_missing_schema(app)


@asynccontextmanager
async def _explain_missing_schema(app: Duly) -> AsyncIterator[Duly]:
    try:
        async with app:
            yield app
    except SchemaMismatch as error:
        if "are missing" in error.message:
            error.fix = "call app.include_documents() in your application, then run `duly migrate`"
        raise


docs = Group("docs", "Manage the documents of an org.", load=_load)


def _principal(org: Org, actor: ActorName = None) -> DocumentPrincipal:
    return DocumentPrincipal(org, acting(actor))


Principal = Annotated[DocumentPrincipal, Depends(_principal)]
DocumentId = Annotated[UUID, argument("Select the document by its id.", "DOCUMENT")]
FolderPath = Annotated[str, argument("Select the folder by its path or id.", "FOLDER")]
NewName = Annotated[str | None, typer.Option("--name", help="Set another name.")]
TargetFolder = Annotated[
    str, typer.Option("--folder", help="Select the folder by its path or id; / is the root.")
]
MetadataOption = Annotated[
    list[str] | None, typer.Option("--metadata", help="Set a value, as in year=2026; repeatable.")
]


class _JobFollower:
    """Prints the id of a job, or follows it to its end."""

    def __init__(self, *, wait: bool, as_json: bool) -> None:
        self._wait = wait
        self._as_json = as_json

    async def follow(self, duly: Duly, principal: DocumentPrincipal, job_id: UUID) -> Output | None:
        if not self._wait:
            return Output({"org_id": principal.org_id, "job_id": job_id}, str(job_id))
        handle = duly.handle(job_id, org_id=principal.org_id)
        job = await watch_job(handle, as_json=self._as_json)
        if job.status is not Status.COMPLETED:
            raise typer.Exit(ExitCode.JOB_FAILED)
        return None


def _follower(
    wait: Annotated[bool, typer.Option("--wait", help="Follow the job; exit with 1 if it fails.")] = False,
    as_json: AsJson = False,
) -> _JobFollower:
    return _JobFollower(wait=wait, as_json=as_json)


JobFollower = Annotated[_JobFollower, Depends(_follower)]


async def find_folder(documents: Documents, principal: DocumentPrincipal, folder: str) -> UUID | None:
    """Return the id of a folder that is named by its path or id; None is the root."""
    path = folder.strip(ROOT)
    if not path:
        return None
    folders = await documents.folders.list(principal)
    ids = [folder.node_id for folder in folders if path in (folder.path, str(folder.node_id))]
    if len(ids) > 1:
        raise ContractError(
            "two folders have this path", field="folder", fix="use the id: see `duly docs folders`"
        )
    if not ids:
        raise _unknown_folder()
    return ids[0]


async def find_subfolder(documents: Documents, principal: DocumentPrincipal, folder: str) -> UUID:
    """Return the id of a folder that is not the root."""
    folder_id = await find_folder(documents, principal, folder)
    if folder_id is None:
        raise _unknown_folder()
    return folder_id


def _unknown_folder() -> UnknownFolder:
    return UnknownFolder("no such folder", field="folder", fix="see `duly docs folders`, or ask for access")


def parse_metadata(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Return metadata from NAME=VALUE pairs; a value that is JSON is parsed, any other is a text."""
    return dict(map(_parse_pair, pairs or ()))


def _parse_pair(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not (name and equals):
        raise typer.BadParameter("write it as NAME=VALUE", param_hint="--metadata")
    try:
        return name, payload.parse_payload(value)
    except PayloadRefused:
        return name, value
