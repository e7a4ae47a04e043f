"""A receiver of webhooks: it checks the signature, takes each message once, and answers 204.

The receiver is the first half, and knows nothing of Duly. The second half has something to receive: an
application with an org and a job, in the same process. With `--once` it ends after the first message.
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

_LARGEST = 256 * 1024
Taken = Callable[[dict[str, Any]], object]


class Receiver(ThreadingHTTPServer):
    """Listens on this machine. Tell it the secret before the first message comes."""

    def __init__(self, take: Taken) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.take = take
        self.secret = ""
        self.seen: set[str] = set()  # in a database, with what you do about the message

    def accept(self, body: bytes, headers: dict[str, str]) -> int:
        """The status to answer with."""
        try:
            message = Webhook(self.secret).verify(body, headers)
        except WebhookVerificationError:
            return 401
        if message["id"] not in self.seen:  # it may come more than once
            self.take(message)
            self.seen.add(message["id"])
        return 204


class _Request(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        body = self.rfile.read(min(size, _LARGEST))  # as it came: the signature is of these bytes
        self.send_response(self.server.accept(body, dict(self.headers)))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: what was taken is printed."""


async def main(*, once: bool) -> None:
    """Make an org, an endpoint for it, and jobs to be told of."""
    loop, taken = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()
    receiver = Receiver(lambda message: loop.call_soon_threadsafe(taken.put_nowait, message))
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    app = Duly(webhook_allow=("127.0.0.1",))  # elsewhere only public addresses, and only https

    @app.job("report.build")
    async def build(number: int) -> int:
        return number

    org, who = uuid.uuid4(), Actor.user("anna")
    async with app:
        await app.create_org(org, "Acme")
        url = f"http://127.0.0.1:{receiver.server_port}/hooks"
        made = await app.webhooks.create(org, url, ["job.completed"], actor=who, reason="an example")
        receiver.secret = made.secret  # told this once: keep it where secrets are kept
        async with app.worker():
            number = 0
            while not once or number < 1:
                number += 1
                with context(org_id=org, actor=who):
                    await build.enqueue(number)
                message = await taken.get()
                print(message["type"], message["subject"], message["time"], flush=True)
                if not once:
                    await asyncio.sleep(2)
    receiver.shutdown()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(once="--once" in sys.argv))
