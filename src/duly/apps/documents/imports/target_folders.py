"""The folders that files are imported into: named like the remote ones, below the connector's folder."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from uuid import UUID

from duly.apps.documents.errors import NameTaken, UnknownFolder
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.folders.service import Folders
from duly.apps.documents.imports.models import FolderMode
from duly.apps.documents.imports.providers.remote import FolderUnavailable
from duly.apps.documents.imports.remote_paths import display_name
from duly.apps.documents.schema import fetch_all
from duly.core.errors import ContractError, Forbidden, LimitExceeded
from duly.jobs.application import App


class TargetFolders:
    """Finds or creates the folders of one import, and caches them."""

    def __init__(self, app: App, principal: DocumentPrincipal, root: UUID | None, mode: FolderMode) -> None:
        self._app = app
        self._principal = principal
        self._mode = mode
        self._known: dict[tuple[str, ...], UUID | None] = {(): root}

    async def folder_for(self, remote_folders: Sequence[str]) -> UUID | None:
        """Return the folder for a file that is in these remote folders, from the imported one down.

        Folders deeper than allowed are left out. Raises `FolderUnavailable` where the requester may not see
        or create the folder; the error does not tell which.
        """
        if self._mode == "flat":
            return self._known[()]
        names = tuple(map(_folder_name, remote_folders))
        for depth, name in enumerate(names, 1):
            if names[:depth] not in self._known:
                self._known[names[:depth]] = await self._child(self._known[names[: depth - 1]], name)
        return self._known[names]

    async def _child(self, parent_id: UUID | None, name: str) -> UUID | None:
        try:
            return await self._find(parent_id, name) or await self._create(parent_id, name)
        except (Forbidden, UnknownFolder, LimitExceeded, NameTaken):
            raise FolderUnavailable from None
        except ContractError as error:
            if error.field != "parent_id":
                raise
            return parent_id  # too deep

    async def _find(self, parent_id: UUID | None, name: str) -> UUID | None:
        values = {"org_id": self._principal.org_id, "parent_id": parent_id, "name": name}
        async with self._app.tenant_session(self._principal.org_id) as conn:
            folder_ids = [row[0] for row in await fetch_all(conn, "nodes/find_by_name", values)]
            hidden = await hidden_folders(conn, self._principal)
        visible = [folder_id for folder_id in folder_ids if folder_id not in hidden]
        # Never create a second folder beside a hidden one: it would expose what belongs into the hidden one.
        if folder_ids and not visible:
            raise UnknownFolder("no such folder")
        return next(iter(visible), None)

    async def _create(self, parent_id: UUID | None, name: str) -> UUID | None:
        try:
            return (await Folders(self._app).create(self._principal, name, parent_id)).node_id
        except NameTaken:  # another import created it meanwhile
            return await self._find(parent_id, name)


def _folder_name(name: str) -> str:
    """Return a remote folder name as one normalized folder name, without separators."""
    return display_name(unicodedata.normalize("NFC", name.replace("/", "_").replace("\\", "_")))
