"""A fake of Microsoft Graph for imports."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from duly.apps.documents.imports.providers.checksums import QuickXor
from tests.apps.documents.imports.fakes.server import Call, Fake, Reply, Stored, said

_DRIVE = "/v1.0/me/drive"


class FakeOneDrive(Fake):
    """Files of a drive. Downloads are at another host of the same machine, for whoever has the URL."""

    def __init__(self) -> None:
        super().__init__()
        self.next_host: str | None = None
        """Where links lead, if not here."""
        self.download_host = "localhost"
        self.expired_keys = 0
        """So many ways to a file have expired when they are taken."""

    async def answer(self, call: Call) -> Reply:
        if call.path == "/common/oauth2/v2.0/token":
            return self.renewed(call)
        if call.path.startswith("/preauthenticated/"):
            expired, self.expired_keys = self.expired_keys > 0, max(0, self.expired_keys - 1)
            if expired or "authorization" in call.headers or call.query.get("tempauth") != "key":
                return _error(401, "unauthenticated")
            return await self.sent(self.stored[call.path.rpartition("/")[2]])
        route = call.path.removeprefix(_DRIVE)
        if route.endswith("/delta"):
            self.check(call)
            return self._delta(call, route)
        if found := re.fullmatch(r"/items/([^/:]+)/content", route):
            self.check(call, "download")
            one = self._found(found[1])
            key = f"http://{self.download_host}:{self.port}/preauthenticated/{one.remote_id}?tempauth=key"
            return Reply(302, headers={"location": key})
        self.check(call)
        if route in ("/root", f"/items/{self.root}"):
            return said(200, self._top())
        return said(200, self._item(self._named(route)))

    def unauthorized(self) -> Reply:
        return _error(401, "InvalidAuthenticationToken")

    def too_busy(self) -> Reply:
        reply = _error(429, "activityLimitReached")
        reply.headers["retry-after"] = self.retry_after
        return reply

    def _delta(self, call: Call, route: str) -> Reply:
        if "token" in call.query and self.expired_cursors:
            self.expired_cursors = False
            return _error(410, "resyncRequired")
        folder = route.removeprefix("/root").removesuffix("/delta").strip(":")
        if folder and self.at(folder) is None:
            return _error(404, "itemNotFound")
        since, skip = map(int, call.query.get("token", "0.0").split("."))
        found = self.changed(folder, since)
        page, more = found[skip : skip + self.page], len(found) > skip + self.page
        token = f"{since}.{skip + self.page}" if more else f"{len(self.journal)}.0"
        place = f"root:{quote(folder)}:" if folder else "root"
        link = f"{self.next_host or self.url}{_DRIVE}/{place}/delta?token={token}"
        top = self._top()
        items = [top, *map(self._change, page)]
        return said(200, {"value": items, "@odata.nextLink" if more else "@odata.deltaLink": link})

    def _named(self, route: str) -> Stored:
        if found := re.fullmatch(r"/items/([^/:]+)(?::/(.+))?", route):
            above = self._found(found[1])
            return above if found[2] is None else self._at(f"{above.path}/{found[2]}")
        return self._at(route.removeprefix("/root:"))

    def _at(self, path: str) -> Stored:
        found = self.at(path)
        if found is None:
            raise _error(404, "itemNotFound")
        return found

    def _found(self, remote_id: str) -> Stored:
        found = self.stored.get(remote_id)
        if found is None or found.removed:
            raise _error(404, "itemNotFound")
        return found

    def _top(self) -> dict[str, Any]:
        return {"id": self.root, "name": "root", "root": {}, "folder": {"childCount": 1}}

    def _change(self, one: Stored) -> dict[str, Any]:
        """As a delta tells it: what it lies in, and not where that is."""
        item = self._item(one)
        item.get("parentReference", {}).pop("path", None)
        return item

    def _item(self, one: Stored) -> dict[str, Any]:
        if one.removed:
            return {"id": one.remote_id, "deleted": {"state": "deleted"}, "file": {}}
        above = one.path.rpartition("/")[0]
        folder = self.at(above)
        item: dict[str, Any] = {
            "id": one.remote_id,
            "name": one.name,
            "eTag": f'"{{{one.remote_id}}},{one.revision}"',
            "parentReference": {
                "driveId": "drive",
                "id": folder.remote_id if folder else self.root,
                "path": f"/drive/root:{quote(above)}",
            },
            "lastModifiedDateTime": "2026-01-02T03:04:05Z",
        }
        if one.kind == "folder":
            return {**item, "folder": {"childCount": 1}, "size": 0}
        checksum = QuickXor()
        checksum.update(one.data)
        hashes = {"quickXorHash": checksum.text()}
        return {**item, "size": len(one.data), "file": {"mimeType": "text/plain", "hashes": hashes}}


def _error(status: int, code: str) -> Reply:
    return said(status, {"error": {"code": code, "message": "no", "innerError": {"request-id": "1"}}})
