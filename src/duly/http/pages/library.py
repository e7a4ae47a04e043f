"""The page with the documents of an org: by folder, type and status. Files come in here, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, get_args
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.documents.errors import unknown_folder
from duly.documents.library import BYTES_MAX
from duly.documents.shapes import Document, DocumentStatus, Node
from duly.documents.uploads import PART_SIZE
from duly.http.caller import Caller
from duly.http.document_shapes import visitor
from duly.http.pages.choices import folder_tree, status_options, type_options, type_word, wanted_type
from duly.http.pages.render import Pages, as_data, fill, language_of
from duly.http.pages.texts import texts
from duly.http.service import Service
from duly.model.access import Scope

_AT_A_TIME = 25
_ROOT = "root"


class _Chosen(NamedTuple):
    """What somebody wants to see; what makes no sense was not asked for."""

    folder: Node | None
    in_root: bool
    doc_type: str | None
    status: DocumentStatus | None

    @classmethod
    def of(cls, request: Request, folders: Sequence[Node]) -> Self:
        asked = request.query_params.get
        given = asked("folder") or ""
        folder = next((one for one in folders if str(one.node_id) == given), None)
        if given not in ("", _ROOT) and folder is None:
            raise unknown_folder()
        status = next((one for one in get_args(DocumentStatus) if one == asked("status")), None)
        return cls(folder, given == _ROOT, wanted_type(asked("doc_type")), status)

    @property
    def node_id(self) -> UUID | None:
        return self.folder.node_id if self.folder else None

    @property
    def place(self) -> str:
        """The folder, as the address names it."""
        return _ROOT if self.in_root else str(self.node_id or "")

    def query(self, **more: str) -> str:
        """The address of the same choice."""
        return urlencode(
            {"folder": self.place, "doc_type": self.doc_type or "", "status": self.status or "", **more}
        )


async def page(pages: Pages, request: Request, service: Service, who: Caller) -> Response:
    """The newest documents, or those that follow, of what was chosen."""
    language, asker = language_of(request), visitor(who)
    folders = await service.documents.folders.list(asker)
    chosen = _Chosen.of(request, folders)
    after = request.query_params.get("after") or None
    found = await service.documents.list(
        asker,
        node_id=chosen.node_id,
        in_root=chosen.in_root,
        doc_type=chosen.doc_type,
        status=chosen.status,
        after=after,
        limit=_AT_A_TIME,
    )
    more = chosen.query(after=found.after or "")
    return pages.page(
        request,
        "documents",
        folders=_folders(language, chosen, folders),
        folder=chosen.place,
        types=type_options(language, chosen.doc_type),
        statuses=status_options(language, chosen.status),
        table=_table(language, service.path(request), found.documents),
        more=fill("documents_more.html", language, query=more) if found.after else Markup(),
        back=fill("documents_first.html", language, query=chosen.query()) if after else Markup(),
        **_forms(language, service.path(request), chosen, service, may_write=who.may(Scope.WRITE)),
    )


def _forms(language: str, base: str, chosen: _Chosen, service: Service, *, may_write: bool) -> dict[str, Any]:
    """What brings files and folders in, for those who may."""
    if not may_write:
        return {"upload": Markup(), "new_folder": Markup(), "export": Markup()}
    most = min(PART_SIZE, service.options.upload_max)
    limits = as_data({"whole": most, "file": BYTES_MAX, "node_id": chosen.node_id and str(chosen.node_id)})
    into = fill("upload_into.html", language, path=chosen.folder.path) if chosen.folder else Markup()
    manage = (
        fill("folder_manage.html", language, base=base, node_id=chosen.node_id)
        if chosen.node_id
        else Markup()
    )
    return {
        "upload": fill("upload.html", language, limits=limits, into=into),
        "new_folder": manage + fill("folder_new.html", language, node_id=chosen.node_id or ""),
        "export": fill("documents_export.html", language, base=base, query=chosen.query()),
    }


def _folders(language: str, chosen: _Chosen, folders: Sequence[Node]) -> Markup:
    here = Markup('aria-current="true"')
    return fill(
        "documents_folders.html",
        language,
        here_all="" if chosen.place else here,
        here_root=here if chosen.in_root else "",
        tree=folder_tree(language, folders, chosen.node_id),
    )


def _table(language: str, base: str, documents: Sequence[Document]) -> Markup:
    if not documents:
        return fill("documents_none.html", language)
    rows = Markup().join(_row(language, base, one) for one in documents)
    return fill("documents_table.html", language, rows=rows)


def _row(language: str, base: str, document: Document) -> Markup:
    return fill(
        "documents_row.html",
        language,
        base=base,
        document_id=document.document_id,
        name=document.name,
        type=type_word(language, document.doc_type),
        status=document.status,
        word=texts(language)[f"status.{document.status}"],
        pages="" if document.page_count is None else document.page_count,
        created=document.created_at.isoformat(),
        created_text=f"{document.created_at:%Y-%m-%d %H:%M} UTC",
    )
