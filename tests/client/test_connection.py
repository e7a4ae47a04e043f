"""The URL and the key of a client, its imports, and the decoder of server-sent events."""

from __future__ import annotations

import subprocess
import sys

import pytest

from duly import AsyncClient, Client, errors
from duly.client.watching import SseDecoder
from tests.architecture.pages import ROOT

KEY = "duly_test_0123456789_abcdefghijklmnopqrstuvwxyz"


def test_url_and_key_default_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DULY_API_URL", "DULY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(errors.ConfigurationError, match="DULY_API_URL"):
        Client()
    monkeypatch.setenv("DULY_API_URL", "https://duly.test/jobs/")
    with pytest.raises(errors.ConfigurationError, match="DULY_API_KEY"):
        AsyncClient()
    monkeypatch.setenv("DULY_API_KEY", KEY)
    with Client() as client:
        assert "https://duly.test/jobs" in repr(client)
        assert KEY not in f"{client!r} {vars(client)} {vars(client._http)}"


@pytest.mark.parametrize(
    ("url", "key", "field"),
    [
        ("https://duly.test", f"{KEY}\n", "key"),
        ("https://duly.test", f"{KEY} {KEY}", "key"),
        ("https://duly.test", f"{KEY}ä", "key"),
        (f"https://anna:{KEY}@duly.test", KEY, "base_url"),
        ("duly.test", KEY, "base_url"),
        ("ftp://duly.test", KEY, "base_url"),
    ],
)
def test_an_invalid_url_or_key_is_reported_without_its_value(url: str, key: str, field: str) -> None:
    with pytest.raises(errors.ConfigurationError) as refused:
        Client(url, key)
    assert refused.value.field == field
    assert KEY not in str(refused.value)


_ALONE = """
import importlib, sys, types
package = types.ModuleType("duly")  # without duly/__init__.py, which loads everything
package.__path__ = [sys.argv[1]]
sys.modules["duly"] = package
importlib.import_module("duly.client")
packages = {m.split(".")[1] for m in sys.modules if m.startswith("duly.")}
assert packages == {"client", "core"}, packages
assert not {"psycopg", "fastapi", "obstore"} & set(sys.modules)
"""
_WITHOUT_HTTPX = """
import sys
sys.modules["httpx"] = None
import duly
try:
    duly.Client
except ImportError as error:
    assert "duly[client]" in str(error), error
else:
    raise AssertionError("duly.Client works without httpx")
"""


@pytest.mark.parametrize("program", [_ALONE, _WITHOUT_HTTPX])
def test_the_client_imports_only_core_and_is_optional(program: str) -> None:
    subprocess.run([sys.executable, "-c", program, ROOT / "src" / "duly"], check=True)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_is_decoded_whatever_its_chunks_are(end: bytes) -> None:
    text = ": hi|id: 1|event: x|data: {a\u2028\x85b}||data|||retry: 5||data: c|data:d||id: 2||".encode()
    whole = text.replace(b"|", end) + b":"
    for size in (1, 2, 3, len(whole)):
        decoder = SseDecoder()
        pieces = (whole[at : at + size] for at in range(0, len(whole), size))
        assert [data for piece in pieces for data in decoder.feed(piece)] == [
            "{a\u2028\x85b}".encode(),
            b"",
            b"c\nd",
        ]
