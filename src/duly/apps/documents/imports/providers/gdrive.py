"""Google Drive, by version 3 of its HTTP API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, NamedTuple

from duly.apps.documents.imports.options import ProviderEndpoint
from duly.apps.documents.imports.providers import json_fields, remote
from duly.apps.documents.imports.providers.checksums import Checksum, Md5
from duly.apps.documents.imports.providers.gdrive_tree import FIELDS, DriveTree, Entry, checked_id, is_folder
from duly.apps.documents.imports.providers.http_client import AuthenticatedClient, with_query
from duly.apps.documents.imports.providers.remote import FolderNames, RemoteFile, RemotePage, RemovedFile

_NATIVE = "application/vnd.google-apps."
_SHORTCUT = f"{_NATIVE}shortcut"
_OFFICE = "application/vnd.openxmlformats-officedocument."


class _ExportType(NamedTuple):
    media_type: str
    suffix: str


_EXPORTS = {
    f"{_NATIVE}document": _ExportType(f"{_OFFICE}wordprocessingml.document", ".docx"),
    f"{_NATIVE}spreadsheet": _ExportType(f"{_OFFICE}spreadsheetml.sheet", ".xlsx"),
    f"{_NATIVE}presentation": _ExportType(f"{_OFFICE}presentationml.presentation", ".pptx"),
}
_RATE_LIMITS = {
    *("rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "sharingRateLimitExceeded"),
}
_RESTRICTIONS = {"cannotDownloadFile", "cannotDownloadAbusiveFile", "fileNotDownloadable"}


class GDrive:
    """The files of a personal or a shared drive."""

    def __init__(self, client: AuthenticatedClient, endpoint: ProviderEndpoint, drive: str | None) -> None:
        self._client = client
        self._api = endpoint.api
        self._drive = drive
        self._tree = DriveTree(self._get, drive)

    async def changes(self, path: str, cursor: str | None) -> AsyncIterator[RemotePage]:
        """See `Remote`. Changes during the first listing come after its cursor."""
        top_id = await self._tree.find_folder(path)
        if cursor is not None:
            async for page in self._changes_since(top_id, cursor):
                yield page
            return
        response = await self._get("changes/startPageToken", driveId=self._drive)
        async for entries, folders in self._tree.walk(top_id, ()):
            yield await self._page([(entry, folders) for entry in entries], None)
        yield RemotePage([], json_fields.cursor(response, "startPageToken"))

    async def find(self, path: str, name: str) -> RemoteFile:
        """See `Remote`."""
        top_id = await self._tree.find_folder(path)
        if name.startswith("id:"):
            entry = await self._tree.read(name.removeprefix("id:"))
            folders = await self._tree.names_below(top_id, entry) or ()
        else:
            names = name.split("/")
            entry, folders = await self._tree.find_below(top_id, names), tuple(names[:-1])
        return await self._downloadable(entry, folders)

    async def refresh(self, file: RemoteFile) -> RemoteFile:
        """See `Remote`."""
        current = await self._downloadable(await self._tree.read(file.remote_id), file.folders)
        # A shortcut has a name and a folder of its own.
        return replace(current, name=file.name, path=file.path)

    def download(self, file: RemoteFile) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Remote`."""
        url = f"{self._api}/files/{checked_id(file.remote_id)}"
        if file.export is not None:
            return self._client.download(with_query(f"{url}/export", mimeType=file.export))
        return self._client.download(with_query(url, alt="media", supportsAllDrives="true"))

    def checksum(self) -> Checksum:
        """See `Remote`."""
        return Md5()

    async def _changes_since(self, top_id: str, cursor: str) -> AsyncIterator[RemotePage]:
        has_more = True
        while has_more:
            response = await self._get(
                "changes",
                pageToken=cursor,
                pageSize=1000,
                includeRemoved="true",
                fields=f"nextPageToken,newStartPageToken,changes(fileId,removed,file({FIELDS}))",
                driveId=self._drive,
                includeItemsFromAllDrives="true",
            )
            next_token = json_fields.text(response, "nextPageToken")
            cursor, has_more = (
                next_token or json_fields.cursor(response, "newStartPageToken"),
                bool(next_token),
            )
            yield await self._changed(top_id, json_fields.entries(response, "changes"), cursor)

    async def _changed(self, top_id: str, changes: list[Entry], cursor: str) -> RemotePage:
        """Return the changes below the folder; the API lists those of the whole drive."""
        removed: list[RemoteFile | RemovedFile] = []
        changed: list[tuple[Entry, FolderNames]] = []
        for change in changes:
            entry, folders = change.get("file"), None
            if isinstance(entry, dict) and not change.get("removed") and not entry.get("trashed"):
                folders = await self._tree.names_below(top_id, entry)
            if folders is None:
                removed.append(RemovedFile(remote_id=json_fields.text(change, "fileId")))
            elif isinstance(entry, dict) and is_folder(entry):
                # A folder that was moved here brings files along for which there are no changes.
                names = (*folders, json_fields.label(entry, "name"))
                async for entries, below in self._tree.walk(json_fields.text(entry, "id"), names):
                    changed += [(inner, below) for inner in entries]
            elif isinstance(entry, dict):
                changed.append((entry, folders))
        page = await self._page(changed, cursor)
        return page._replace(entries=[*removed, *page.entries])

    async def _page(self, entries: list[tuple[Entry, FolderNames]], cursor: str | None) -> RemotePage:
        files = [await self._file(entry, folders) for entry, folders in entries if not is_folder(entry)]
        downloadable = [file for file in files if file is not None]
        return RemotePage([*downloadable], cursor, len(files) - len(downloadable))

    async def _downloadable(self, entry: Entry, folders: FolderNames) -> RemoteFile:
        file = await self._file(entry, folders)
        if file is None:
            raise remote.not_downloadable()
        return file

    async def _file(self, entry: Entry, folders: FolderNames) -> RemoteFile | None:
        """Return the file of an entry, or None if it cannot be downloaded; a shortcut is resolved."""
        name = json_fields.label(entry, "name")
        if json_fields.text(entry, "mimeType") == _SHORTCUT:
            try:
                entry = await self._tree.read(json_fields.text(entry, "shortcutDetails", "targetId"))
            except (remote.RemoteNotFound, remote.FileRefused):
                return None
        kind, remote_id = json_fields.text(entry, "mimeType"), json_fields.text(entry, "id")
        export, path = _EXPORTS.get(kind), "".join(f"/{part}" for part in (*folders, name))
        revision = json_fields.text(entry, "headRevisionId") or json_fields.text(entry, "modifiedTime")
        if not remote_id or not revision or (kind.startswith(_NATIVE) and export is None):
            return None
        if export is not None:
            name = f"{name}{export.suffix}"
            return RemoteFile(remote_id, revision, name, path, export=export.media_type, folders=folders)
        size, checksum = json_fields.count(entry, "size"), json_fields.text(entry, "md5Checksum") or None
        return RemoteFile(remote_id, revision, name, path, size, checksum, folders=folders)

    async def _get(self, route: str, **parameters: str | int | None) -> Any:
        url = with_query(f"{self._api}/{route}", supportsAllDrives="true", **parameters)
        return await self._client.get_json(url)


def map_error(status: int, body: Any) -> remote.ProviderError | None:
    """Map errors of Google; a status of 403 has many meanings."""
    error = body.get("error") if isinstance(body, dict) else None
    details = json_fields.entries(error, "errors")
    reasons = {json_fields.text(detail, "reason") for detail in details}
    if reasons & _RATE_LIMITS:
        return remote.ProviderBusy()
    if status in (400, 410) and "pageToken" in {json_fields.text(detail, "location") for detail in details}:
        return remote.RemoteCursorExpired()
    if "exportSizeLimitExceeded" in reasons:
        return remote.FileRefused("too large for the provider to export", "import.too_large")
    return remote.restricted() if reasons & _RESTRICTIONS else None
