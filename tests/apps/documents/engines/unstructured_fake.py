"""A fake Unstructured service: it returns elements, or the configured response."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "geheimer-schluessel"


@dataclass
class Fake:
    """The recorded requests, and the response."""

    url: str = ""
    pages: int = 3
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    forms: list[dict[str, list[str]]] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)

    def response(self) -> bytes:
        """Return the body: by default a heading and a paragraph on each page."""
        if self.body is not None:
            return self.body
        points = [[100, 200], [100, 240], [500, 240], [500, 200]]
        coordinates = {"points": points, "system": "PixelSpace", "layout_width": 1000, "layout_height": 2000}
        return json.dumps(
            [
                {
                    "type": kind,
                    "element_id": f"{kind}-{page}",
                    "text": f"{kind} auf Seite {page}",
                    "metadata": {
                        "page_number": page,
                        "coordinates": coordinates,
                        "detection_class_prob": 0.9,
                    },
                }
                for page in range(1, self.pages + 1)
                for kind in ("Title", "NarrativeText")
            ]
        ).encode()


@contextmanager
def fake_unstructured() -> Iterator[Fake]:
    """Serve on a free port during the block."""
    fake = Fake()
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    fake: Fake

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/general/v0/general" or self.headers["unstructured-api-key"] != KEY:
            return self._respond(401, b'{"detail": "API key is malformed"}', {})
        form: dict[str, list[str]] = {}
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        for part in message_from_bytes(head + body, policy=HTTP).iter_parts():  # type: ignore[attr-defined]
            name = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            self.fake.files.append(content) if name == "files" else form.setdefault(name, []).append(
                content.decode()
            )
        self.fake.forms.append(form)
        return self._respond(self.fake.status, self.fake.response(), self.fake.headers)

    def _respond(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Do not log."""
