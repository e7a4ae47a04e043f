"""Where files go: into folders called as those that they lie in there, below the connector's."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from duly.apps.documents.errors import NameTaken, UnknownFolder
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.folders.service import Folders
from duly.apps.documents.imports.providers.remote import NoFolder
from duly.apps.documents.imports.remote_paths import shown_name
from duly.apps.documents.schema import fetch_all
from duly.core.errors import ContractError, Forbidden, LimitExceeded
from duly.jobs.application import App

Keeping = Literal["keep", "flat"]
"""Whether folders there become folders here, or everything goes into the connector's own."""


class Places:
    """The folders of one import. What is found or made is remembered."""

    def __init__(self, app: App, who: DocumentPrincipal, top: UUID | None, keeping: Keeping) -> None:
        self._app = app
        self._who = who
        self._keeping = keeping
        self._known: dict[tuple[str, ...], UUID | None] = {(): top}

    async def of(self, folders: Sequence[str]) -> UUID | None:
        """The folder for a file that lies in these, from the one that was asked for down.

        Those that are deeper than folders may be are left out. Raises `NoFolder` where whoever asked may
        not look or make one: which of the two is nobody's business.
        """
        if self._keeping == "flat":
            return self._known[()]
        names = tuple(map(_safe, folders))
        for depth in range(1, len(names) + 1):
            if names[:depth] not in self._known:
                self._known[names[:depth]] = await self._inner(
                    self._known[names[: depth - 1]], names[depth - 1]
                )
        return self._known[names]

    async def _inner(self, parent_id: UUID | None, name: str) -> UUID | None:
        try:
            return await self._found(parent_id, name) or await self._made(parent_id, name)
        except (Forbidden, UnknownFolder, LimitExceeded, NameTaken):
            raise NoFolder("its folder cannot be had by whoever asked") from None
        except ContractError as error:
            if error.field != "parent_id":
                raise
            return parent_id  # too deep: it lies with those above

    async def _found(self, parent_id: UUID | None, name: str) -> UUID | None:
        values = {"org_id": self._who.org_id, "parent_id": parent_id, "name": name}
        async with self._app.tenant_session(self._who.org_id) as conn:
            found = [row[0] for row in await fetch_all(conn, "nodes/find", values)]
            closed = await hidden_folders(conn, self._who)
        # Never one of the same name beside it: what belongs in a closed folder would lie open there.
        if found and not set(found) - set(closed):
            raise UnknownFolder("no such folder")
        return next((node_id for node_id in found if node_id not in closed), None)

    async def _made(self, parent_id: UUID | None, name: str) -> UUID | None:
        try:
            return (await Folders(self._app).create(self._who, name, parent_id)).node_id
        except NameTaken:  # by another import, meanwhile
            return await self._found(parent_id, name)


def _safe(name: str) -> str:
    """A name of a folder: one name, however many there seem to be in it, and written in one way."""
    return shown_name(unicodedata.normalize("NFC", name.replace("/", "_").replace("\\", "_")))
