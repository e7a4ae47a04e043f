"""The pages on which documents are brought in from elsewhere, and given out."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.documents.access import private_to
from duly.documents.exports.exports import DOCUMENTS, SEARCH
from duly.documents.imports.connectors import Connector
from duly.http.caller import Caller
from duly.http.document_shapes import visitor
from duly.http.pages.choices import folder_options, type_options, wanted_type
from duly.http.pages.listing import table
from duly.http.pages.render import Pages, fill, language_of
from duly.http.pages.texts import texts
from duly.http.service import Service
from duly.model.access import Scope
from duly.model.job import JobSnapshot

_PROVIDERS = {"dropbox": "Dropbox", "onedrive": "OneDrive", "gdrive": "Google Drive"}
_RECENT = 10


async def connectors(pages: Pages, request: Request, service: Service, who: Caller) -> Response:
    """Accounts elsewhere; used by whoever may write, made and removed by admins."""
    language, asker = language_of(request), visitor(who)
    folders = await service.documents.folders.list(asker)
    paths = {one.node_id: one.path for one in folders}
    found = [_connector(language, one, paths, who) for one in await service.documents.connectors.list(asker)]
    new = fill("connectors_new.html", language, folders=folder_options(language, folders, None))
    return pages.page(
        request,
        "connectors",
        connectors=Markup().join(found) or fill("connectors_none.html", language),
        new=new if who.may(Scope.ADMIN) else Markup(),
    )


def _connector(language: str, one: Connector, paths: Mapping[UUID, str], who: Caller) -> Markup:
    said, off, at = texts(language), one.disabled_at is not None, one.last_import_at
    last = (
        fill("connector_last.html", language, at=at.isoformat(), text=f"{at:%Y-%m-%d %H:%M} UTC")
        if at
        else None
    )
    act = "enable" if off else "disable"
    start = fill("connector_start.html", language, connector_id=one.connector_id)
    look = fill(
        "connector_look.html",
        language,
        connector_id=one.connector_id,
        act=act,
        act_word=said[f"connectors.{act}"],
    )
    return fill(
        "connector.html",
        language,
        connector_id=one.connector_id,
        name=one.name,
        state="canceled",
        state_word=said["connectors.disabled"] if off else "",
        provider=_PROVIDERS[one.provider],
        account=one.account or "",
        folder=paths.get(one.node_id, "") if one.node_id else said["documents.root"],
        last=last or said["connectors.never"],
        start=start if who.may(Scope.WRITE) and not off else Markup(),
        look=look if who.may(Scope.ADMIN) else Markup(),
    )


async def exports(pages: Pages, request: Request, service: Service, who: Caller) -> Response:
    """The form, filled in with what was listed or looked for; and what they had given out last."""
    language, base, asked = language_of(request), service.path(request), request.query_params.get
    folders = await service.documents.folders.list(visitor(who))
    chosen = next((one.node_id for one in folders if str(one.node_id) == asked("folder")), None)
    form = fill(
        "exports_form.html",
        language,
        q=asked("q") or "",
        folders=folder_options(language, folders, chosen),
        types=type_options(language, wanted_type(asked("doc_type"))),
    )
    jobs = [job for kind in (DOCUMENTS, SEARCH) for job in await _last(service, who, kind)]
    recent = sorted(jobs, key=lambda job: job.created_at, reverse=True)[:_RECENT]
    shown = fill("exports_recent.html", language, table=table(language, base, recent))
    return pages.page(
        request,
        "exports",
        form=form if who.may(Scope.WRITE) else fill("readonly.html", language),
        recent=shown if recent else Markup(),
    )


async def _last(service: Service, who: Caller, job_type: str) -> tuple[JobSnapshot, ...]:
    mine = private_to(visitor(who))
    found = await service.jobs.list(who.org_id, job_type=job_type, subject_id=mine, limit=_RECENT)
    return tuple(found.jobs)
