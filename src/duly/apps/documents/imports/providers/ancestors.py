"""The folders above a remote file."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from duly.apps.documents.imports.providers.remote import FolderNames, RemoteNotFound

MAX_DEPTH = 100
ReadFolder = Callable[[str], Awaitable[tuple[str, str]]]
"""Requests a folder by id, and returns its name and the id of its parent."""


class Ancestors:
    """Names and parents of folders; each folder is requested once."""

    def __init__(self, read: ReadFolder) -> None:
        self._read = read
        self._known: dict[str, tuple[str, str]] = {}

    def add(self, folder_id: str, name: str, parent_id: str) -> None:
        """Add a folder that need not be requested any more."""
        self._known[folder_id] = (name, parent_id)

    async def names_below(self, top_id: str, folder_id: str) -> FolderNames | None:
        """Return the names from below the top folder down to a folder; None if it is not below."""
        names = deque[str]()
        while folder_id != top_id:
            if not folder_id or len(names) == MAX_DEPTH:
                return None
            if folder_id not in self._known:
                try:
                    self._known[folder_id] = await self._read(folder_id)
                except RemoteNotFound:
                    self._known[folder_id] = ("", "")
            name, folder_id = self._known[folder_id]
            names.appendleft(name)
        return tuple(names)
