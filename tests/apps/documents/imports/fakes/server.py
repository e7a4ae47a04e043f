"""The base of the fakes: a drive with a journal, tokens, and errors on demand."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass
class Stored:
    """Something in the drive."""

    remote_id: str
    path: str
    data: bytes = b""
    revision: int = 1
    kind: str = "file"
    removed: bool = False
    target: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Call(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))


@dataclass
class Reply(Exception):
    """Also to be raised from anywhere."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    sent: int | None = None
    """How much of the body goes out before the line breaks."""


def said(status: int, value: Any, **headers: str) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"content-type": "application/json", **headers})


class Fake(ABC):
    """A provider on this machine."""

    root = "root"

    def __init__(self) -> None:
        self.stored: dict[str, Stored] = {}
        self.journal: list[str] = []
        self.page = 100
        self.tokens = {"access-0"}
        self.refresh = "refresh-0"
        self.renewals = 0
        self.revoked = False
        self.rotates = False
        self.busy: list[str] = []
        """The next calls of these kinds, `list` or `download`, are told to come back later."""
        self.retry_after = "7"
        self.damage: dict[str, list[str]] = {}
        """By the file's path: `cut` breaks off, `short` pretends to be complete, `flipped` is another."""
        self.on_download: Callable[[str], Awaitable[None]] | None = None
        self.downloads: list[str] = []
        self.calls: list[Call] = []
        self.expired_cursors = False
        self.url = ""
        self._serving: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def put(self, path: str, data: bytes = b"", kind: str = "file", target: str = "") -> Stored:
        """A new file, or a new revision of one; its folders come with it."""
        above = path.rpartition("/")[0]
        if above and self.at(above) is None:
            self.put(above, kind="folder")
        found = self.at(path)
        if found is None:
            found = Stored(self.new_id(), path, data, kind=kind, target=target)
            self.stored[found.remote_id] = found
        else:
            found.data, found.revision = data, found.revision + 1
        self.journal.append(found.remote_id)
        return found

    def remove(self, path: str) -> None:
        found = self.at(path)
        assert found is not None
        found.removed = True
        self.journal.append(found.remote_id)

    def at(self, path: str) -> Stored | None:
        wanted = path.lower()
        return next((s for s in self.stored.values() if s.path.lower() == wanted and not s.removed), None)

    def new_id(self) -> str:
        return f"remote-{len(self.stored)}"

    def changed(self, folder: str, since: int) -> list[Stored]:
        """What has changed below a folder, each once, in the order of its last change."""
        last = {remote_id: number for number, remote_id in enumerate(self.journal[since:])}
        below = f"{folder.rstrip('/')}/".lower()
        found = [self.stored[one] for one in sorted(last, key=lambda one: last[one])]
        return [one for one in found if one.path.lower().startswith(below)]

    @abstractmethod
    async def answer(self, call: Call) -> Reply: ...

    @abstractmethod
    def unauthorized(self) -> Reply: ...

    @abstractmethod
    def too_busy(self) -> Reply: ...

    def check(self, call: Call, kind: str = "list") -> None:
        """Whether they may come in, and now."""
        if call.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            raise self.unauthorized()
        if self.busy[:1] == [kind]:
            self.busy.pop(0)
            raise self.too_busy()

    def renewed(self, call: Call) -> Reply:
        """A new token for an old one."""
        assert call.form["grant_type"] == "refresh_token"
        assert call.form["client_id"] == "app"
        if self.revoked or call.form["refresh_token"] != self.refresh:
            return said(400, {"error": "invalid_grant", "error_description": "it was taken back"})
        self.renewals += 1
        self.tokens = {f"access-{self.renewals}"}
        token = {"access_token": f"access-{self.renewals}", "token_type": "bearer", "expires_in": 14400}
        if self.rotates:
            self.refresh = f"refresh-{self.renewals}"
            token["refresh_token"] = self.refresh
        return said(200, token)

    async def sent(self, file: Stored, **headers: str) -> Reply:
        """A download, damaged if it is to be."""
        self.downloads.append(file.path)
        if self.on_download is not None:
            await self.on_download(file.path)
        reply = Reply(200, file.data, {"content-type": "application/octet-stream", **headers})
        match self.damage[file.path].pop(0) if self.damage.get(file.path) else None:
            case "cut":
                reply.sent = len(file.data) // 2
            case "short":
                reply.body = file.data[: len(file.data) // 2]
            case "flipped":
                reply.body = bytes([file.data[0] ^ 1]) + file.data[1:]
        return reply

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await _write(writer, await self._replied(await _read(reader))):
                    pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self._serving.discard(task)

    async def _replied(self, call: Call) -> Reply:
        self.calls.append(call)
        try:
            return await self.answer(call)
        except Reply as raised:
            return raised


async def _read(reader: asyncio.StreamReader) -> Call:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    url = urlsplit(target)
    return Call(method, unquote(url.path), dict(parse_qsl(url.query)), headers, body)


async def _write(writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Send it; whether the line is still there."""
    headers = {**reply.headers, "content-length": str(len(reply.body))}
    lines = [f"HTTP/1.1 {reply.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    writer.write(reply.body[: reply.sent])
    await writer.drain()
    return reply.sent is None
