"""Dropbox, by version 2 of its HTTP API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from duly.apps.documents.imports.options import ProviderEndpoint
from duly.apps.documents.imports.providers import json_fields, remote
from duly.apps.documents.imports.providers.checksums import Checksum, ContentHash
from duly.apps.documents.imports.providers.http_client import AuthenticatedClient
from duly.apps.documents.imports.providers.remote import FolderNames, RemoteFile, RemotePage, RemovedFile

_PAGE_SIZE = 2_000


class Dropbox:
    """The files of an account, or of one of its namespaces."""

    def __init__(self, client: AuthenticatedClient, endpoint: ProviderEndpoint, drive: str | None) -> None:
        self._client = client
        self._endpoint = endpoint
        root = {".tag": "namespace_id", "namespace_id": drive}
        self._headers = {} if drive is None else {"dropbox-api-path-root": json.dumps(root)}

    async def changes(self, path: str, cursor: str | None) -> AsyncIterator[RemotePage]:
        """See `Remote`."""
        top, has_more = await self._folder_path(path), True
        while has_more:
            if cursor is None:
                request: dict[str, Any] = {"path": path, "recursive": True, "limit": _PAGE_SIZE}
                response = await self._call("files/list_folder", request)
            else:
                response = await self._call("files/list_folder/continue", {"cursor": cursor})
            cursor = json_fields.cursor(response, "cursor")
            yield _page(response, cursor, top)
            has_more = response.get("has_more") is True

    async def find(self, path: str, name: str) -> RemoteFile:
        """See `Remote`."""
        if not name.startswith("id:"):
            name = f"{path}/{name}"
        entry = await self._call("files/get_metadata", {"path": name})
        file = _file(entry, await self._folder_path(path))
        if file is None:
            raise remote.not_downloadable()
        return file

    async def refresh(self, file: RemoteFile) -> RemoteFile:
        """See `Remote`."""
        return await self.find("", file.remote_id)

    def download(self, file: RemoteFile) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Remote`."""
        headers = {**self._headers, "dropbox-api-arg": json.dumps({"path": file.remote_id})}
        url = f"{self._endpoint.content}/2/files/download"
        return self._client.download(url, method="POST", headers=headers)

    def checksum(self) -> Checksum:
        """See `Remote`."""
        return ContentHash()

    async def _folder_path(self, path: str) -> str:
        """Return the path of a folder that is given by its path or id."""
        if not path.startswith("id:"):
            return path
        return json_fields.label(await self._call("files/get_metadata", {"path": path}), "path_lower")

    async def _call(self, route: str, request: dict[str, Any]) -> Any:
        return await self._client.post_json(f"{self._endpoint.api}/2/{route}", request, self._headers)


def map_error(status: int, body: Any) -> remote.ProviderError | None:
    """Map errors of Dropbox; `error_summary` is a path of tags, followed by dots."""
    summary = json_fields.text(body, "error_summary")
    if status == 409 and summary.startswith("reset"):
        return remote.RemoteCursorExpired()
    if status == 409 and "not_found" in summary:
        return remote.RemoteNotFound()
    if status == 409 and "too_many_requests" in summary:
        return remote.ProviderBusy()
    if status == 409 and "restricted_content" in summary:
        return remote.restricted()
    if status == 400 and "access token" in str(body).lower():
        return remote.RemoteUnauthorized()
    return None


def _page(response: Any, cursor: str, top: str) -> RemotePage:
    entries: list[RemoteFile | RemovedFile] = []
    skipped = 0
    for entry in json_fields.entries(response, "entries"):
        kind, file = json_fields.text(entry, ".tag"), _file(entry, top)
        if kind == "deleted":
            entries.append(RemovedFile(path=json_fields.label(entry, "path_lower")))
        elif file is not None:
            entries.append(file)
        elif kind == "file":
            skipped += 1
    return RemotePage(entries, cursor, skipped)


def _file(entry: Any, top: str) -> RemoteFile | None:
    remote_id, revision = json_fields.text(entry, "id"), json_fields.text(entry, "rev")
    if json_fields.text(entry, ".tag") not in ("", "file") or not remote_id or not revision:
        return None
    if entry.get("is_downloadable") is False:
        return None
    return RemoteFile(
        remote_id,
        revision,
        json_fields.label(entry, "name"),
        json_fields.label(entry, "path_lower"),
        json_fields.count(entry, "size"),
        json_fields.text(entry, "content_hash") or None,
        folders=_folders(entry, top),
    )


def _folders(entry: Any, top: str) -> FolderNames:
    """Return the folder names below the top folder in their own spelling; none for a file elsewhere."""
    lower, display = json_fields.label(entry, "path_lower"), json_fields.label(entry, "path_display")
    if not lower.startswith(f"{top.lower()}/"):
        return ()
    path = display if display.count("/") == lower.count("/") else lower
    return tuple(path.split("/")[top.count("/") + 1 : -1])
