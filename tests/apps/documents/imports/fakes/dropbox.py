"""A fake of Dropbox for imports."""

from __future__ import annotations

import json
from typing import Any

from duly.apps.documents.imports.providers.checksums import ContentHash
from tests.apps.documents.imports.fakes.server import Call, Fake, Reply, Stored, said


class FakeDropbox(Fake):
    """Files of an account; cursors are places in its journal."""

    def new_id(self) -> str:
        return f"id:{len(self.stored):016d}"

    async def answer(self, call: Call) -> Reply:
        match call.path:
            case "/oauth2/token":
                return self.renewed(call)
            case "/2/files/list_folder":
                self.check(call)
                folder = call.json["path"]
                if folder and self.at(folder) is None:
                    return _error("path/not_found/", {".tag": "path", "path": {".tag": "not_found"}})
                return self._listed(folder, 0, 0, new=True)
            case "/2/files/list_folder/continue":
                self.check(call)
                if self.expired_cursors:
                    self.expired_cursors = False
                    return _error("reset/", {".tag": "reset"})
                since, skip, new, folder = json.loads(call.json["cursor"])
                return self._listed(folder, since, skip, new=new)
            case "/2/files/get_metadata":
                self.check(call)
                return said(200, self._entry(self._found(call.json["path"])))
            case "/2/files/download":
                self.check(call, "download")
                file = self._found(json.loads(call.headers["dropbox-api-arg"])["path"])
                reply = await self.sent(file)
                entry = {name: value for name, value in self._entry(file).items() if name != ".tag"}
                reply.headers["dropbox-api-result"] = json.dumps(entry)
                return reply
        return Reply(404)

    def unauthorized(self) -> Reply:
        return _error("expired_access_token/", {".tag": "expired_access_token"}, 401)

    def too_busy(self) -> Reply:
        reason = {"reason": {".tag": "too_many_requests"}, "retry_after": int(self.retry_after)}
        reply = _error("too_many_requests/", reason, 429)
        reply.headers["retry-after"] = self.retry_after
        return reply

    def _listed(self, folder: str, since: int, skip: int, *, new: bool) -> Reply:
        found = [one for one in self.changed(folder, since) if not (new and one.removed)]
        page, more = found[skip : skip + self.page], len(found) > skip + self.page
        cursor = [since, skip + self.page, new, folder] if more else [len(self.journal), 0, False, folder]
        entries = [self._entry(one) for one in page]
        return said(200, {"entries": entries, "cursor": json.dumps(cursor), "has_more": more})

    def _found(self, path: str) -> Stored:
        found = self.stored.get(path) if path.startswith("id:") else self.at(path)
        if found is None or found.removed:
            raise _error("path/not_found/", {".tag": "path", "path": {".tag": "not_found"}})
        return found

    def _entry(self, one: Stored) -> dict[str, Any]:
        entry = {"name": one.name, "path_lower": one.path.lower(), "path_display": one.path}
        if one.removed:
            return {".tag": "deleted", **entry}
        if one.kind == "folder":
            return {".tag": "folder", **entry, "id": one.remote_id}
        checksum = ContentHash()
        checksum.update(one.data)
        return {
            ".tag": "file",
            **entry,
            "id": one.remote_id,
            "client_modified": "2026-01-02T03:04:05Z",
            "server_modified": "2026-01-02T03:04:06Z",
            "rev": f"{one.revision:016x}",
            "size": len(one.data),
            "is_downloadable": True,
            "content_hash": checksum.text(),
        }


def _error(summary: str, error: dict[str, Any], status: int = 409) -> Reply:
    return said(status, {"error_summary": f"{summary}..", "error": error})
