"""A fake of Google Drive for imports."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from tests.apps.documents.imports.fakes.server import Call, Fake, Reply, Stored, said

_NATIVE = "application/vnd.google-apps."
_Q = re.compile(
    r"'(?P<above>[\w-]+)' in parents(?: and name = '(?P<name>(?:[^'\\]|\\.)*)')? and trashed = false"
)


class FakeGDrive(Fake):
    """Files of somebody's drive. `kind` is also `document`, `spreadsheet`, `form`, or `shortcut`."""

    async def answer(self, call: Call) -> Reply:
        if call.path == "/token":
            return self.renewed(call)
        route = call.path.removeprefix("/drive/v3/")
        downloads = call.query.get("alt") == "media" or route.endswith("/export")
        self.check(call, "download" if downloads else "list")
        if route == "files":
            return self._list(call)
        if route == "changes/startPageToken":
            return said(200, {"kind": "drive#startPageToken", "startPageToken": str(len(self.journal))})
        if route == "changes":
            return self._changes(call)
        if route == f"files/{self.root}":
            top = {"id": self.root, "name": "My Drive", "mimeType": f"{_NATIVE}folder", "trashed": False}
            return said(200, top)
        one = self._found(route.split("/")[1])
        if not downloads:
            return said(200, self._entry(one))
        if route.endswith("/export") is (one.kind == "file"):
            raise _error(403, "fileNotExportable" if one.kind == "file" else "fileNotDownloadable")
        if one.kind != "file" and len(one.data) > 10 * 2**20:
            raise _error(403, "exportSizeLimitExceeded")
        return await self.sent(one)

    def unauthorized(self) -> Reply:
        return _error(401, "authError")

    def too_busy(self) -> Reply:
        reply = _error(403, "userRateLimitExceeded")
        reply.headers["retry-after"] = self.retry_after
        return reply

    def _list(self, call: Call) -> Reply:
        wanted = _Q.fullmatch(call.query["q"])
        assert wanted is not None, call.query["q"]
        found = [
            one for one in self.stored.values() if not one.removed and self._above(one) == wanted["above"]
        ]
        if wanted["name"] is not None:
            name = re.sub(r"\\(.)", r"\1", wanted["name"])
            found = [one for one in found if one.name == name]
        start = int(call.query.get("pageToken", "0"))
        page: dict[str, Any] = {"files": [self._entry(one) for one in found[start : start + self.page]]}
        if len(found) > start + self.page:
            page["nextPageToken"] = str(start + self.page)
        return said(200, {"kind": "drive#fileList", "incompleteSearch": False, **page})

    def _changes(self, call: Call) -> Reply:
        if self.expired_cursors:
            self.expired_cursors = False
            raise _error(410, "invalid", location="pageToken")
        start = int(call.query["pageToken"])
        seen = self.journal[start : start + self.page]
        end = start + len(seen)
        last = {"nextPageToken": str(end)} if end < len(self.journal) else {"newStartPageToken": str(end)}
        changes = [self._change(self.stored[one]) for one in dict.fromkeys(seen)]
        return said(200, {"kind": "drive#changeList", **last, "changes": changes})

    def _change(self, one: Stored) -> dict[str, Any]:
        change = {"kind": "drive#change", "changeType": "file", "fileId": one.remote_id}
        if one.removed:
            return {**change, "removed": True}
        return {**change, "removed": False, "file": self._entry(one)}

    def _found(self, remote_id: str) -> Stored:
        found = self.stored.get(remote_id)
        if found is None or found.removed:
            raise _error(404, "notFound", location="fileId")
        return found

    def _above(self, one: Stored) -> str:
        above = self.at(one.path.rpartition("/")[0])
        return self.root if above is None else above.remote_id

    def _entry(self, one: Stored) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "kind": "drive#file",
            "id": one.remote_id,
            "name": one.name,
            "parents": [self._above(one)],
            "trashed": one.removed,
            "modifiedTime": f"2026-01-02T03:04:{one.revision:02d}.000Z",
            "mimeType": "application/octet-stream" if one.kind == "file" else f"{_NATIVE}{one.kind}",
        }
        if one.kind == "shortcut":
            return {**entry, "shortcutDetails": {"targetId": one.target}}
        if one.kind != "file":
            return entry
        digest = hashlib.md5(one.data).hexdigest()
        head = f"{one.remote_id}-{one.revision}"
        return {**entry, "size": str(len(one.data)), "md5Checksum": digest, "headRevisionId": head}


def _error(status: int, reason: str, **more: str) -> Reply:
    errors = [{"domain": "global", "reason": reason, "message": "no", **more}]
    return said(status, {"error": {"code": status, "message": "no", "errors": errors}})
