"""OneDrive and SharePoint libraries, by Microsoft Graph."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from duly.apps.documents.imports.options import Place
from duly.apps.documents.imports.providers import json_fields as answers
from duly.apps.documents.imports.providers.checksums import Checksum, QuickXor
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
    Unreachable,
)
from duly.apps.documents.imports.providers.tokens import Tokens

_DEEPEST = 100


class OneDrive:
    """The files of a drive."""

    def __init__(self, web: Web, tokens: Tokens, place: Place, drive: str | None) -> None:
        self._web = web
        self._tokens = tokens
        self._api = place.api
        self._known: dict[str, tuple[str, str]] = {}
        """Of folders, their name and the folder above; empty where there is none."""
        self._drive = (
            f"{place.api}/me/drive" if drive is None else f"{place.api}/drives/{quote(drive, safe='')}"
        )

    async def changes(self, path: str, cursor: str | None) -> AsyncIterator[Page]:
        """See `Remote`. A cursor is the link that leads on."""
        top = answers.text(await self._get(self._item(path)), "id")
        link, more = cursor or f"{self._item(path, ':')}/delta", True
        while more:
            said = await self._get(self._own(link))
            further = answers.text(said, "@odata.nextLink")
            link, more = further or answers.text(said, "@odata.deltaLink"), bool(further)
            yield Page(await self._entries(said, top), self._own(link), _packages(said))

    async def named(self, path: str, name: str) -> RemoteFile:
        """See `Remote`."""
        where = name if name.startswith("id:") or not path else f"{path}/{name}"
        if path.startswith("id:") and not name.startswith("id:"):
            url = f"{self._item(path)}:/{quote(name)}"
        else:
            url = self._item(where)
        item = await self._get(url)
        found = _file(item)
        if found is None:
            raise Missing("this is no file that can be had")
        top = answers.text(await self._get(self._item(path)), "id")
        return replace(found, folders=await self._folders(item, top))

    async def again(self, file: RemoteFile) -> RemoteFile:
        """See `Remote`."""
        found = _file(await self._get(self._item(f"id:{file.remote_id}")))
        if found is None:
            raise Missing("this is no file that can be had")
        return replace(found, path=file.path, folders=file.folders)

    def download(self, file: RemoteFile) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Remote`."""
        return self._web.download(self._tokens, "GET", f"{self._item(f'id:{file.remote_id}')}/content")

    def checksum(self) -> Checksum:
        """See `Remote`."""
        return QuickXor()

    async def _entries(self, said: Any, top: str) -> list[RemoteFile | Gone]:
        found: list[RemoteFile | Gone] = []
        for item in answers.entries(said, "value"):
            file, remote_id = _file(item), answers.text(item, "id")
            if "deleted" in item and remote_id:
                found.append(Gone(remote_id=remote_id))
            elif file is not None:
                folders = await self._folders(item, top)
                # A list of changes does not say where things lie, only in what.
                path = file.path if _above(item) else "".join(f"/{name}" for name in (*folders, file.name))
                found.append(replace(file, path=path, folders=folders))
            elif isinstance(item.get("folder"), dict):
                self._known[remote_id] = _named(item)
        return found

    async def _folders(self, item: Any, top: str) -> tuple[str, ...]:
        """The names from the folder down to where an item lies; none if that is elsewhere."""
        above, names = answers.text(item, "parentReference", "id"), deque[str]()
        while above != top:
            if not above or len(names) == _DEEPEST:
                return ()
            if above not in self._known:
                try:
                    self._known[above] = _named(await self._get(self._item(f"id:{above}")))
                except Missing:
                    self._known[above] = ("", "")
            name, above = self._known[above]
            names.appendleft(name)
        return tuple(names)

    def _item(self, path: str, end: str = "") -> str:
        if path.startswith("id:"):
            return f"{self._drive}/items/{quote(path.removeprefix('id:'), safe='')}"
        inner = path.strip("/")
        return f"{self._drive}/root:/{quote(inner)}{end}" if inner else f"{self._drive}/root"

    async def _get(self, url: str) -> Any:
        return await self._web.json(self._tokens, "GET", url)

    def _own(self, link: str) -> str:
        """A link that stays where it comes from: the token goes along."""
        ours, theirs = urlsplit(self._api), urlsplit(link)
        if ours[:2] != theirs[:2] or not theirs.path.startswith(f"{ours.path}/"):
            raise Unreachable("the provider's answer leads elsewhere, or nowhere")
        return link


def explain(status: int, said: Any) -> Trouble | None:
    """What Microsoft means."""
    code = answers.text(said, "error", "code")
    if status == 410 or code == "resyncRequired":
        return Expired("the provider does not know the cursor any more")
    if code in ("activityLimitReached", "tooManyRequests"):
        return Busy(None)
    if code == "malwareDetected":
        return Refused("the provider found malware in this file", "import.malware")
    return None


def _packages(said: Any) -> int:
    """Notebooks and the like, which are neither files nor folders."""
    return sum("package" in item for item in answers.entries(said, "value"))


def _file(item: Any) -> RemoteFile | None:
    # The cTag would be the content's alone, but work accounts do not tell it in a delta.
    remote_id, revision = answers.text(item, "id"), answers.text(item, "eTag")
    if not isinstance(item.get("file"), dict) or "package" in item or not remote_id or not revision:
        return None
    name = answers.label(item, "name")
    return RemoteFile(
        remote_id,
        revision,
        name,
        f"{_above(item)}/{name}",
        answers.count(item, "size"),
        answers.text(item, "file", "hashes", "quickXorHash") or None,
    )


def _above(item: Any) -> str:
    """The path of the folder that it lies in, where that is told."""
    return unquote(answers.label(item.get("parentReference"), "path").partition("root:")[2])


def _named(item: Any) -> tuple[str, str]:
    return answers.label(item, "name"), answers.text(item, "parentReference", "id")
