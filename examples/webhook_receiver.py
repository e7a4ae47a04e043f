"""Receive webhooks: verify the signature, process each message once, and answer 204.

The receiver is the first half and does not depend on Duly. The second half runs an application with an org
and a job in the same process, as a source of messages. With `--once` it ends after the first message.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from duly import Actor, Duly, context

MAX_BODY_BYTES = 256 * 1024
MessageHandler = Callable[[dict[str, Any]], object]


class Receiver(ThreadingHTTPServer):
    """Listens on this machine. Set the secret before the first message comes."""

    def __init__(self, handle_message: MessageHandler) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.handle_message = handle_message
        self.secret = ""
        self.processed: set[str] = set()  # in production: in a database, with the effect of the message

    def accept(self, body: bytes, headers: dict[str, str]) -> int:
        """Verify a message and return the HTTP status."""
        try:
            message = Webhook(self.secret).verify(body, headers)
        except WebhookVerificationError:
            return 401
        if message["id"] not in self.processed:  # a message may be delivered more than once
            self.handle_message(message)
            self.processed.add(message["id"])
        return 204


class _Request(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        body = self.rfile.read(min(size, MAX_BODY_BYTES))  # unchanged: the signature covers these bytes
        self.send_response(self.server.accept(body, dict(self.headers)))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing; messages are printed."""


async def main(*, once: bool) -> None:
    """Create an org, an endpoint and jobs."""
    loop, messages = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()
    receiver = Receiver(lambda message: loop.call_soon_threadsafe(messages.put_nowait, message))
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    app = Duly(webhook_allow=("127.0.0.1",))  # default: public addresses and https only

    @app.job("report.build")
    async def build(number: int) -> int:
        return number

    org, actor = uuid.uuid4(), Actor.user("anna")
    async with app:
        await app.create_org(org, "Acme")
        url = f"http://127.0.0.1:{receiver.server_port}/hooks"
        created = await app.webhooks.create(org, url, ["job.completed"], actor=actor, reason="example")
        receiver.secret = created.secret  # returned once: store it with your secrets
        async with app.worker():
            number = 0
            while not once or number < 1:
                number += 1
                with context(org_id=org, actor=actor):
                    await build.enqueue(number)
                message = await messages.get()
                print(message["type"], message["subject"], message["time"], flush=True)
                if not once:
                    await asyncio.sleep(2)
    receiver.shutdown()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(once="--once" in sys.argv))
