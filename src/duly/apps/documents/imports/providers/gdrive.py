"""Google Drive, by its HTTP API, version 3."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, NamedTuple

from duly.apps.documents.imports.options import Place
from duly.apps.documents.imports.providers import json_fields as answers
from duly.apps.documents.imports.providers.checksums import Checksum, Md5
from duly.apps.documents.imports.providers.gdrive_tree import FIELDS, FOLDER, Tree, Where, checked
from duly.apps.documents.imports.providers.http_client import Web, query
from duly.apps.documents.imports.providers.remote import (
    Busy,
    Expired,
    Gone,
    Missing,
    Page,
    Refused,
    RemoteFile,
    Trouble,
    Unreachable,
)
from duly.apps.documents.imports.providers.tokens import Tokens

_NATIVE = "application/vnd.google-apps."
_SHORTCUT = f"{_NATIVE}shortcut"
_OFFICE = "application/vnd.openxmlformats-officedocument."


class _Export(NamedTuple):
    media_type: str
    ending: str


_EXPORTS = {
    f"{_NATIVE}document": _Export(f"{_OFFICE}wordprocessingml.document", ".docx"),
    f"{_NATIVE}spreadsheet": _Export(f"{_OFFICE}spreadsheetml.sheet", ".xlsx"),
    f"{_NATIVE}presentation": _Export(f"{_OFFICE}presentationml.presentation", ".pptx"),
}
_BUSY = {"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "sharingRateLimitExceeded"}


class GDrive:
    """The files of somebody's drive, or of a shared one."""

    def __init__(self, web: Web, tokens: Tokens, place: Place, drive: str | None) -> None:
        self._web = web
        self._tokens = tokens
        self._api = place.api
        self._drive = drive
        self._tree = Tree(self._get, drive)

    async def changes(self, path: str, cursor: str | None) -> AsyncIterator[Page]:
        """See `Remote`. What changes while a folder is read for the first time comes after the cursor."""
        top = await self._tree.find(path)
        if cursor is not None:
            async for page in self._since(top, cursor):
                yield page
            return
        said = await self._get("changes/startPageToken", driveId=self._drive)
        async for found, where in self._tree.walk(top, ()):
            yield await self._page([(entry, where) for entry in found], None)
        yield Page([], _token(said, "startPageToken"))

    async def named(self, path: str, name: str) -> RemoteFile:
        """See `Remote`."""
        if name.startswith("id:"):
            entry = await self._tree.entry(name.removeprefix("id:"))
            where = await self._tree.place(await self._tree.find(path), entry) or ()
        else:
            names = name.split("/")
            entry, where = await self._tree.below(await self._tree.find(path), names), tuple(names[:-1])
        return _had(await self._file(entry, where))

    async def again(self, file: RemoteFile) -> RemoteFile:
        """See `Remote`."""
        found = _had(await self._file(await self._tree.entry(file.remote_id), file.folders))
        # A shortcut has a name and a place of its own.
        return replace(found, name=file.name, path=file.path)

    def download(self, file: RemoteFile) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Remote`."""
        url = f"{self._api}/files/{checked(file.remote_id)}"
        if file.export is not None:
            return self._web.download(self._tokens, "GET", query(f"{url}/export", mimeType=file.export))
        return self._web.download(self._tokens, "GET", query(url, alt="media", supportsAllDrives="true"))

    def checksum(self) -> Checksum:
        """See `Remote`."""
        return Md5()

    async def _since(self, top: str, cursor: str) -> AsyncIterator[Page]:
        more = True
        while more:
            fields = f"nextPageToken,newStartPageToken,changes(fileId,removed,file({FIELDS}))"
            said = await self._get(
                "changes", pageToken=cursor, pageSize=1000, includeRemoved="true", fields=fields, **self._all
            )
            further = answers.text(said, "nextPageToken")
            cursor, more = further or _token(said, "newStartPageToken"), bool(further)
            yield await self._changed(top, answers.entries(said, "changes"), cursor)

    async def _changed(self, top: str, changes: list[dict[str, Any]], cursor: str) -> Page:
        """The changes that are ours: they are told of the whole drive."""
        gone: list[RemoteFile | Gone] = []
        ours: list[tuple[dict[str, Any], Where]] = []
        for change in changes:
            entry, where = change.get("file"), None
            if isinstance(entry, dict) and not change.get("removed") and not entry.get("trashed"):
                where = await self._tree.place(top, entry)
            if where is None:
                gone.append(Gone(remote_id=answers.text(change, "fileId")))
            elif isinstance(entry, dict) and answers.text(entry, "mimeType") == FOLDER:
                # One that was moved here brings its files along, of which nothing is told.
                inner = (*where, answers.label(entry, "name"))
                async for found, below in self._tree.walk(answers.text(entry, "id"), inner):
                    ours += [(one, below) for one in found]
            elif isinstance(entry, dict):
                ours.append((entry, where))
        page = await self._page(ours, cursor)
        return page._replace(entries=[*gone, *page.entries])

    async def _page(self, found: list[tuple[dict[str, Any], Where]], cursor: str | None) -> Page:
        files = [
            await self._file(entry, where)
            for entry, where in found
            if answers.text(entry, "mimeType") != FOLDER
        ]
        taken = [file for file in files if file is not None]
        return Page([*taken], cursor, len(files) - len(taken))

    async def _file(self, entry: dict[str, Any], where: Where) -> RemoteFile | None:
        """What an entry stands for, if that can be had."""
        name = answers.label(entry, "name")
        if answers.text(entry, "mimeType") == _SHORTCUT:
            try:
                entry = await self._tree.entry(answers.text(entry, "shortcutDetails", "targetId"))
            except (Missing, Refused):
                return None
        kind, remote_id = answers.text(entry, "mimeType"), answers.text(entry, "id")
        export, path = _EXPORTS.get(kind), "".join(f"/{one}" for one in (*where, name))
        revision = answers.text(entry, "headRevisionId") or answers.text(entry, "modifiedTime")
        if not remote_id or not revision or (kind.startswith(_NATIVE) and export is None):
            return None
        if export is not None:
            shown = f"{name}{export.ending}"
            return RemoteFile(remote_id, revision, shown, path, export=export.media_type, folders=where)
        size, checksum = answers.count(entry, "size"), answers.text(entry, "md5Checksum") or None
        return RemoteFile(remote_id, revision, name, path, size, checksum, folders=where)

    @property
    def _all(self) -> dict[str, str | None]:
        return {"driveId": self._drive, "supportsAllDrives": "true", "includeItemsFromAllDrives": "true"}

    async def _get(self, route: str, **parameters: str | int | None) -> Any:
        given = {"supportsAllDrives": "true", **parameters}
        return await self._web.json(self._tokens, "GET", query(f"{self._api}/{route}", **given))


def explain(status: int, said: Any) -> Trouble | None:
    """What Google means: 403 says many things."""
    error = said.get("error") if isinstance(said, dict) else None
    reasons = {answers.text(one, "reason") for one in answers.entries(error, "errors")}
    if reasons & _BUSY:
        return Busy(None)
    if status in (400, 410) and any(
        answers.text(o, "location") == "pageToken" for o in answers.entries(error, "errors")
    ):
        return Expired("the provider does not know the cursor any more")
    if "exportSizeLimitExceeded" in reasons:
        return Refused("too large for the provider to export", "import.too_large")
    if reasons & {"cannotDownloadFile", "cannotDownloadAbusiveFile", "fileNotDownloadable"}:
        return Refused("the provider does not give this file away", "import.restricted")
    return None


def _had(found: RemoteFile | None) -> RemoteFile:
    if found is None:
        raise Missing("this is no file that can be had")
    return found


def _token(said: Any, name: str) -> str:
    found = answers.text(said, name)
    if not found:
        raise Unreachable("the provider's answer holds no cursor")
    return found
