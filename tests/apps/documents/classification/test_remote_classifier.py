"""The remote classifier: it needs consent, and its verdict needs a quote from the document."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import suppress
from typing import Any, Self

import pytest

from duly import Duly, Outcome, Status
from duly.apps.documents.classification.jobs import declare
from duly.apps.documents.classification.remote_classifier import ChatEndpoint, RemoteClassifierError
from duly.apps.documents.classification.service import ClassificationService
from tests.apps.documents.classification.stored_documents import Sql, put, shown, visitor
from tests.worker.working import WAIT_TIMEOUT, working

_SECRET = "not-for-logs"


class Service:
    """A fake OpenAI-compatible service."""

    def __init__(self, content: Any, status: int = 200) -> None:
        self.content, self.status = content, status
        self.asked: list[tuple[str, Any]] = []
        self._serving: list[Any] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.endpoint = ChatEndpoint(f"http://127.0.0.1:{port}/v1", "tiny", _SECRET)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.gather(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.append(asyncio.current_task())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        [length] = [
            line.split(":")[1] for line in head.lower().split("\r\n") if line.startswith("content-length")
        ]
        self.asked.append((head, json.loads(await reader.readexactly(int(length)))))
        content = self.content if isinstance(self.content, str) else json.dumps(self.content)
        body = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
        writer.write(f"HTTP/1.1 {self.status} X\r\nretry-after: 9\r\nconnection: close\r\n".encode())
        writer.write(f"content-length: {len(body)}\r\n\r\n".encode() + body)
        with suppress(OSError):
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def test_only_quotes_that_stand_in_the_document_are_evidence() -> None:
    said = {"doc_type": "invoice", "confidence": 0.9, "quotes": ["Rechnung  Nr. 7", "made up"]}
    async with Service(said) as service:
        right = await service.endpoint.classify(["Hallo", "Ihre\nRechnung Nr. 7"], "a.pdf")
        guess = await service.endpoint.classify(["etwas ganz anderes"], "a.pdf")
    assert (right.doc_type, right.review, right.model_version) == ("invoice", False, "remote-tiny")
    assert [(one.page, one.text) for one in right.evidence] == [(2, "Rechnung Nr. 7")]
    assert (guess.doc_type, guess.review, guess.evidence) == ("other", True, ())
    [(head, body), _] = service.asked
    assert head.startswith("POST /v1/chat/completions")
    assert body["response_format"]["json_schema"]["strict"] is True
    assert _SECRET not in repr(service.endpoint)


@pytest.mark.parametrize(
    ("content", "status", "is_retryable"),
    [("no json", 200, False), ({"doc_type": "spy", "confidence": 1}, 200, False), ("", 401, False),
     ("", 429, True), ({"doc_type": "invoice", "confidence": 7}, 200, False), ("x" * 300_000, 200, False)],
)  # fmt: skip
async def test_an_invalid_response_is_an_error(content: Any, status: int, is_retryable: bool) -> None:
    async with Service(content, status) as service:
        with pytest.raises(RemoteClassifierError) as refused:
            await service.endpoint.classify(["text"], "a.pdf")
    assert refused.value.is_retryable is is_retryable
    assert refused.value.retry_after == (9.0 if status != 200 else None)


async def test_nothing_is_sent_without_consent(app: Duly, acting: uuid.UUID, sql: Sql) -> None:
    document_id, who = put(sql, acting, ["Ihre Rechnung Nr. 7"]), visitor(acting)
    async with Service({"doc_type": "invoice", "confidence": 0.9, "quotes": ["Rechnung"]}) as service:
        declare(app, service.endpoint)
        classes = ClassificationService(app)
        async with working(app):
            refused = await (await classes.classify(who, document_id, engine="remote")).wait(WAIT_TIMEOUT)
            assert (refused.status, refused.outcome) == (Status.FAILED, Outcome.BLOCKED)
            assert (refused.error_code, service.asked) == ("classification.no_consent", [])
            asked = await classes.classify(who, document_id, engine="remote", consent=True)
            said = await asked.result(WAIT_TIMEOUT)
    assert (said.doc_type, said.model_version, said.consent_given_by) == ("invoice", "remote-tiny", "user:u1")
    assert shown(sql, document_id) == ("invoice", False)
    assert len(service.asked) == 1
