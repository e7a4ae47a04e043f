"""Dropbox, by its HTTP API, version 2."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from duly.apps.documents.imports.options import Place
from duly.apps.documents.imports.providers import json_fields as answers
from duly.apps.documents.imports.providers.checksums import Checksum, ContentHash
from duly.apps.documents.imports.providers.http_client import Web
from duly.apps.documents.imports.providers.remote import (
    Busy,
    Expired,
    Gone,
    Missing,
    Page,
    Refused,
    RemoteFile,
    Trouble,
    Unauthorized,
    Unreachable,
)
from duly.apps.documents.imports.providers.tokens import Tokens

_PAGE = 2_000


class Dropbox:
    """The files of an account, or of one of its namespaces."""

    def __init__(self, web: Web, tokens: Tokens, place: Place, drive: str | None) -> None:
        self._web = web
        self._tokens = tokens
        self._place = place
        root = {".tag": "namespace_id", "namespace_id": drive}
        self._headers = {} if drive is None else {"dropbox-api-path-root": json.dumps(root)}

    async def changes(self, path: str, cursor: str | None) -> AsyncIterator[Page]:
        """See `Remote`."""
        top, more = await self._top(path), True
        while more:
            if cursor is None:
                asked: dict[str, Any] = {"path": path, "recursive": True, "limit": _PAGE}
                said = await self._call("files/list_folder", asked)
            else:
                said = await self._call("files/list_folder/continue", {"cursor": cursor})
            cursor = answers.text(said, "cursor")
            if not cursor:
                raise Unreachable("the provider's answer holds no cursor")
            yield _page(said, cursor, top)
            more = said.get("has_more") is True

    async def named(self, path: str, name: str) -> RemoteFile:
        """See `Remote`."""
        if not name.startswith("id:"):
            name = f"{path}/{name}"
        found = _file(await self._call("files/get_metadata", {"path": name}), await self._top(path))
        if found is None:
            raise Missing("this is no file that can be had")
        return found

    async def again(self, file: RemoteFile) -> RemoteFile:
        """See `Remote`."""
        return await self.named("", file.remote_id)

    def download(self, file: RemoteFile) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Remote`."""
        asked = {**self._headers, "dropbox-api-arg": json.dumps({"path": file.remote_id})}
        return self._web.download(self._tokens, "POST", f"{self._place.content}/2/files/download", asked)

    def checksum(self) -> Checksum:
        """See `Remote`."""
        return ContentHash()

    async def _top(self, path: str) -> str:
        """The path of a folder, also of one that was named by its id."""
        if not path.startswith("id:"):
            return path
        return answers.label(await self._call("files/get_metadata", {"path": path}), "path_lower")

    async def _call(self, route: str, asked: dict[str, Any]) -> Any:
        headers = {**self._headers, "content-type": "application/json"}
        body = json.dumps(asked).encode()
        return await self._web.json(
            self._tokens, "POST", f"{self._place.api}/2/{route}", headers=headers, body=body
        )


def explain(status: int, said: Any) -> Trouble | None:
    """What Dropbox means. `error_summary` is a path of tags, with dots behind."""
    summary = answers.text(said, "error_summary")
    if status == 409 and summary.startswith("reset"):
        return Expired("the provider does not know the cursor any more")
    if status == 409 and "not_found" in summary:
        return Missing("the provider has nothing of that name")
    if status == 409 and "too_many_requests" in summary:
        return Busy(None)
    if status == 409 and "restricted_content" in summary:
        return Refused("the provider does not give this file away", "import.restricted")
    if status == 400 and "access token" in str(said).lower():
        return Unauthorized("the provider does not accept the connector's token")
    return None


def _page(said: Any, cursor: str, top: str) -> Page:
    found: list[RemoteFile | Gone] = []
    passed_over = 0
    for entry in answers.entries(said, "entries"):
        kind, file = answers.text(entry, ".tag"), _file(entry, top)
        if kind == "deleted":
            found.append(Gone(path=answers.label(entry, "path_lower")))
        elif file is not None:
            found.append(file)
        elif kind == "file":
            passed_over += 1
    return Page(found, cursor, passed_over)


def _file(entry: Any, top: str) -> RemoteFile | None:
    remote_id, revision = answers.text(entry, "id"), answers.text(entry, "rev")
    if answers.text(entry, ".tag") not in ("", "file") or not remote_id or not revision:
        return None
    if entry.get("is_downloadable") is False:
        return None
    return RemoteFile(
        remote_id,
        revision,
        answers.label(entry, "name"),
        answers.label(entry, "path_lower"),
        answers.count(entry, "size"),
        answers.text(entry, "content_hash") or None,
        folders=_folders(entry, top),
    )


def _folders(entry: Any, top: str) -> tuple[str, ...]:
    """The names below the folder as people wrote them; none for a file that lies elsewhere."""
    lower, shown = answers.label(entry, "path_lower"), answers.label(entry, "path_display")
    if not lower.startswith(f"{top.lower()}/"):
        return ()
    shown = shown if shown.count("/") == lower.count("/") else lower
    return tuple(shown.split("/")[top.count("/") + 1 : -1])
