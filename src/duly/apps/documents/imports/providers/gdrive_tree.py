"""The folders of Google Drive: found by their names, walked down, and climbed up."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Protocol

from duly.apps.documents.imports.providers import json_fields as answers
from duly.apps.documents.imports.providers.remote import Missing

FIELDS = (
    "id,name,mimeType,size,md5Checksum,headRevisionId,modifiedTime,trashed,parents,shortcutDetails(targetId)"
)
FOLDER = "application/vnd.google-apps.folder"
_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
_DEEPEST = 100
Where = tuple[str, ...]
"""The names of folders, from one of them down; a name may have slashes in it."""


class Get(Protocol):
    """Asks the API."""

    async def __call__(self, route: str, **parameters: str | int | None) -> Any:
        """The answer."""


class Tree:
    """Who lies where. A folder is asked for once."""

    def __init__(self, get: Get, drive: str | None) -> None:
        self._get = get
        self._drive = drive
        self._known: dict[str, tuple[str, str]] = {}
        """Of folders, their name and the folder above; empty where there is none."""

    async def find(self, path: str) -> str:
        """The id of a folder, by the names from the root down or as `id:<its id>`."""
        entry = await self.entry(
            path.removeprefix("id:") if path.startswith("id:") else self._drive or "root"
        )
        top = answers.text(entry, "id")
        if path and not path.startswith("id:"):
            entry = await self.below(top, path.strip("/").split("/"))
        if answers.text(entry, "mimeType") != FOLDER:
            raise Missing("this is no folder")
        return answers.text(entry, "id")

    async def below(self, top: str, names: list[str]) -> dict[str, Any]:
        """What is reached by these names; of two with the same one, the first that is told."""
        entry: dict[str, Any] = {}
        for name in names:
            wanted = name.replace("\\", "\\\\").replace("'", "\\'")
            found = await self._list(f"'{checked(top)}' in parents and name = '{wanted}' and trashed = false")
            if not found:
                raise Missing("the provider has nothing of that name")
            entry, top = found[0], answers.text(found[0], "id")
        return entry

    async def entry(self, remote_id: str) -> dict[str, Any]:
        """A file or folder by its id."""
        said = await self._get(f"files/{checked(remote_id)}", fields=FIELDS)
        if not isinstance(said, dict) or said.get("trashed") is True:
            raise Missing("it lies in the bin")
        return said

    async def walk(self, top: str, path: Where) -> AsyncIterator[tuple[list[dict[str, Any]], Where]]:
        """What lies in a folder and below, page by page, and in which folder."""
        waiting, seen = deque([(top, path)]), {top}
        while waiting:
            folder, where = waiting.popleft()
            async for found in self._pages(f"'{checked(folder)}' in parents and trashed = false"):
                yield found, where
                for entry in found:
                    inner = answers.text(entry, "id")
                    if answers.text(entry, "mimeType") == FOLDER and inner not in seen:
                        seen.add(inner)
                        waiting.append((inner, (*where, answers.label(entry, "name"))))

    async def place(self, top: str, entry: dict[str, Any]) -> Where | None:
        """The way from the folder to where an entry lies; None if that is elsewhere."""
        above, names = _parent(entry), deque[str]()
        for _ in range(_DEEPEST):
            if above == top:
                return tuple(names)
            if not above:
                return None
            name, above = await self._above(above)
            names.appendleft(name)
        return None

    async def _above(self, folder: str) -> tuple[str, str]:
        if folder not in self._known:
            try:
                entry = await self.entry(folder)
                self._known[folder] = (answers.label(entry, "name"), _parent(entry))
            except Missing:
                self._known[folder] = ("", "")
        return self._known[folder]

    async def _list(self, wanted: str) -> list[dict[str, Any]]:
        return [entry async for page in self._pages(wanted) for entry in page]

    async def _pages(self, wanted: str) -> AsyncIterator[list[dict[str, Any]]]:
        token: str | None = None
        while token != "":
            said = await self._get(
                "files",
                q=wanted,
                pageToken=token,
                pageSize=1000,
                fields=f"nextPageToken,files({FIELDS})",
                includeItemsFromAllDrives="true",
                corpora=self._drive and "drive",
                driveId=self._drive,
            )
            yield answers.entries(said, "files")
            token = answers.text(said, "nextPageToken")


def checked(remote_id: str) -> str:
    """An id that means nothing else in a URL or a query."""
    if not _ID.fullmatch(remote_id):
        raise Missing("this is no id of the provider's")
    return remote_id


def _parent(entry: dict[str, Any]) -> str:
    found = entry.get("parents")
    first = found[0] if isinstance(found, list) and found else ""
    return first if isinstance(first, str) else ""
