"""The folder tree of Google Drive: find folders by path, walk down, and locate files."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Protocol

from duly.apps.documents.imports.providers import json_fields
from duly.apps.documents.imports.providers.ancestors import Ancestors
from duly.apps.documents.imports.providers.remote import FolderNames, RemoteNotFound

FIELDS = (
    "id,name,mimeType,size,md5Checksum,headRevisionId,modifiedTime,trashed,parents,shortcutDetails(targetId)"
)
FOLDER = "application/vnd.google-apps.folder"
_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
Entry = dict[str, Any]


class GetRoute(Protocol):
    """Requests a route of the API."""

    async def __call__(self, route: str, **parameters: str | int | None) -> Any:
        """Return the JSON of the response."""


class DriveTree:
    """Folders and files of a drive."""

    def __init__(self, get: GetRoute, drive: str | None) -> None:
        self._get = get
        self._drive = drive
        self._ancestors = Ancestors(self._read_folder)

    async def find_folder(self, path: str) -> str:
        """Return the id of a folder, by its names from the root down or as `id:<id>`."""
        is_id = path.startswith("id:")
        entry = await self.read(path.removeprefix("id:") if is_id else self._drive or "root")
        if path and not is_id:
            entry = await self.find_below(json_fields.text(entry, "id"), path.strip("/").split("/"))
        if not is_folder(entry):
            raise RemoteNotFound("this is not a folder")
        return json_fields.text(entry, "id")

    async def find_below(self, folder_id: str, names: list[str]) -> Entry:
        """Return the entry at a path below a folder; of two with the same name, the first one listed."""
        entry: Entry = {}
        for name in names:
            escaped = name.replace("\\", "\\\\").replace("'", "\\'")
            query = f"'{checked_id(folder_id)}' in parents and name = '{escaped}' and trashed = false"
            entries = [entry async for page in self._pages(query) for entry in page]
            if not entries:
                raise RemoteNotFound
            entry, folder_id = entries[0], json_fields.text(entries[0], "id")
        return entry

    async def read(self, remote_id: str) -> Entry:
        """Return a file or folder by its id."""
        entry = await self._get(f"files/{checked_id(remote_id)}", fields=FIELDS)
        if not isinstance(entry, dict) or entry.get("trashed") is True:
            raise RemoteNotFound("the file is in the trash")
        return entry

    async def walk(
        self, folder_id: str, names: FolderNames
    ) -> AsyncIterator[tuple[list[Entry], FolderNames]]:
        """Yield the entries of a folder and of those below it, page by page, with their folder names."""
        queue, visited = deque([(folder_id, names)]), {folder_id}
        while queue:
            parent_id, names = queue.popleft()
            async for page in self._pages(f"'{checked_id(parent_id)}' in parents and trashed = false"):
                yield page, names
                for entry in filter(is_folder, page):
                    child_id = json_fields.text(entry, "id")
                    if child_id not in visited:
                        visited.add(child_id)
                        queue.append((child_id, (*names, json_fields.label(entry, "name"))))

    async def names_below(self, folder_id: str, entry: Entry) -> FolderNames | None:
        """Return the folder names from a folder down to an entry; None if it is elsewhere."""
        return await self._ancestors.names_below(folder_id, _parent_id(entry))

    async def _read_folder(self, folder_id: str) -> tuple[str, str]:
        entry = await self.read(folder_id)
        return json_fields.label(entry, "name"), _parent_id(entry)

    async def _pages(self, query: str) -> AsyncIterator[list[Entry]]:
        token: str | None = None
        while token != "":
            response = await self._get(
                "files",
                q=query,
                pageToken=token,
                pageSize=1000,
                fields=f"nextPageToken,files({FIELDS})",
                includeItemsFromAllDrives="true",
                corpora=self._drive and "drive",
                driveId=self._drive,
            )
            yield json_fields.entries(response, "files")
            token = json_fields.text(response, "nextPageToken")


def is_folder(entry: Entry) -> bool:
    """Return whether an entry is a folder."""
    return json_fields.text(entry, "mimeType") == FOLDER


def checked_id(remote_id: str) -> str:
    """Return an id that is safe in a URL and in a query."""
    if not _ID.fullmatch(remote_id):
        raise RemoteNotFound("this is not an id of the provider")
    return remote_id


def _parent_id(entry: Entry) -> str:
    parents = entry.get("parents")
    first = parents[0] if isinstance(parents, list) and parents else ""
    return first if isinstance(first, str) else ""
