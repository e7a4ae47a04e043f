"""OneDrive and SharePoint libraries, by Microsoft Graph."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from duly.apps.documents.imports.options import ProviderEndpoint
from duly.apps.documents.imports.providers import json_fields, remote
from duly.apps.documents.imports.providers.ancestors import Ancestors
from duly.apps.documents.imports.providers.checksums import Checksum, QuickXor
from duly.apps.documents.imports.providers.http_client import AuthenticatedClient
from duly.apps.documents.imports.providers.remote import FolderNames, RemoteFile, RemotePage, RemovedFile


class OneDrive:
    """The files of a drive."""

    def __init__(self, client: AuthenticatedClient, endpoint: ProviderEndpoint, drive: str | None) -> None:
        self._get = client.get_json
        self._client = client
        self._api = endpoint.api
        self._drive = (
            f"{self._api}/me/drive" if drive is None else f"{self._api}/drives/{quote(drive, safe='')}"
        )
        self._ancestors = Ancestors(self._read_folder)

    async def changes(self, path: str, cursor: str | None) -> AsyncIterator[RemotePage]:
        """See `Remote`. A cursor is the link to the next page."""
        top_id = json_fields.text(await self._get(self._item_url(path)), "id")
        link, has_more = cursor or f"{self._item_url(path, ':')}/delta", True
        while has_more:
            response = await self._get(self._checked_link(link))
            next_link = json_fields.text(response, "@odata.nextLink")
            link, has_more = next_link or json_fields.text(response, "@odata.deltaLink"), bool(next_link)
            entries = await self._entries(response, top_id)
            yield RemotePage(entries, self._checked_link(link), _count_packages(response))

    async def find(self, path: str, name: str) -> RemoteFile:
        """See `Remote`."""
        if path.startswith("id:") and not name.startswith("id:"):
            url = f"{self._item_url(path)}:/{quote(name)}"
        else:
            url = self._item_url(name if name.startswith("id:") or not path else f"{path}/{name}")
        item = await self._get(url)
        file = _file(item)
        if file is None:
            raise remote.not_downloadable()
        top_id = json_fields.text(await self._get(self._item_url(path)), "id")
        return replace(file, folders=await self._folders(item, top_id))

    async def refresh(self, file: RemoteFile) -> RemoteFile:
        """See `Remote`."""
        current = _file(await self._get(self._item_url(f"id:{file.remote_id}")))
        if current is None:
            raise remote.not_downloadable()
        return replace(current, path=file.path, folders=file.folders)

    def download(self, file: RemoteFile) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Remote`."""
        return self._client.download(f"{self._item_url(f'id:{file.remote_id}')}/content")

    def checksum(self) -> Checksum:
        """See `Remote`."""
        return QuickXor()

    async def _entries(self, response: Any, top_id: str) -> list[RemoteFile | RemovedFile]:
        entries: list[RemoteFile | RemovedFile] = []
        for item in json_fields.entries(response, "value"):
            file, remote_id = _file(item), json_fields.text(item, "id")
            if "deleted" in item and remote_id:
                entries.append(RemovedFile(remote_id=remote_id))
            elif file is not None:
                folders = await self._folders(item, top_id)
                # A delta has no paths, only the ids of parents.
                names = (*folders, file.name)
                path = file.path if _parent_path(item) else "".join(f"/{name}" for name in names)
                entries.append(replace(file, path=path, folders=folders))
            elif isinstance(item.get("folder"), dict):
                self._ancestors.add(remote_id, *_name_and_parent(item))
        return entries

    async def _folders(self, item: Any, top_id: str) -> FolderNames:
        """Return the folder names below the top folder; none for an item elsewhere."""
        return await self._ancestors.names_below(top_id, _name_and_parent(item)[1]) or ()

    async def _read_folder(self, folder_id: str) -> tuple[str, str]:
        return _name_and_parent(await self._get(self._item_url(f"id:{folder_id}")))

    def _item_url(self, path: str, end: str = "") -> str:
        if path.startswith("id:"):
            return f"{self._drive}/items/{quote(path.removeprefix('id:'), safe='')}"
        inner = path.strip("/")
        return f"{self._drive}/root:/{quote(inner)}{end}" if inner else f"{self._drive}/root"

    def _checked_link(self, link: str) -> str:
        """Return a link to the API itself; the token must not be sent elsewhere."""
        ours, theirs = urlsplit(self._api), urlsplit(link)
        if ours[:2] != theirs[:2] or not theirs.path.startswith(f"{ours.path}/"):
            raise remote.ProviderUnreachable("the provider's response has no link to its API")
        return link


def map_error(status: int, body: Any) -> remote.ProviderError | None:
    """Map errors of Microsoft Graph."""
    code = json_fields.text(body, "error", "code")
    if status == 410 or code == "resyncRequired":
        return remote.RemoteCursorExpired()
    if code in ("activityLimitReached", "tooManyRequests"):
        return remote.ProviderBusy()
    if code == "malwareDetected":
        return remote.FileRefused("the provider detected malware in this file", "import.malware")
    return None


def _count_packages(response: Any) -> int:
    """Count notebooks and the like, which are neither files nor folders."""
    return sum("package" in item for item in json_fields.entries(response, "value"))


def _file(item: Any) -> RemoteFile | None:
    # The cTag would cover the content alone, but a delta of a work account does not contain it.
    remote_id, revision = json_fields.text(item, "id"), json_fields.text(item, "eTag")
    if not isinstance(item.get("file"), dict) or "package" in item or not remote_id or not revision:
        return None
    name = json_fields.label(item, "name")
    return RemoteFile(
        remote_id,
        revision,
        name,
        f"{_parent_path(item)}/{name}",
        json_fields.count(item, "size"),
        json_fields.text(item, "file", "hashes", "quickXorHash") or None,
    )


def _parent_path(item: Any) -> str:
    """Return the path of the parent folder; empty where the provider does not send it."""
    return unquote(json_fields.label(item.get("parentReference"), "path").partition("root:")[2])


def _name_and_parent(item: Any) -> tuple[str, str]:
    return json_fields.label(item, "name"), json_fields.text(item, "parentReference", "id")
