"""From bytes to text."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.apps.analyze import Library, Source
from duly.apps.analyze.reading import Unreadable, decoded, tidy
from duly.core.errors import ConfigurationError

PAGE = """<!DOCTYPE html>
<html><head><title>Preisliste</title><style>p { color: red }</style>
<script>if (1 < 2) alert("x")</script></head>
<body><!-- nicht <b>zeigen</b> --><h1>Preise &amp; Fristen</h1>
<p title="a > b">Die S&auml;ge kostet
<b>99</b>&nbsp;&euro;.<br>Bis 5 < 6.</p><table><tr><td>eins</td><td>zwei</td></tr></table></body></html>"""


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Größe".encode(), "Größe"),
        ("Größe".encode("utf-8-sig"), "Größe"),
        ("Größe".encode("utf-16"), "Größe"),
        ("Größe 5 €".encode("cp1252"), "Größe 5 €"),
        (b"a\r\nb\rc", "a\nb\nc"),
        ("u\u0308ber Stra\u00dfe".encode(), "über Straße"),
        (b"", ""),
    ],
)
def test_a_text_is_read_by_its_content(data: bytes, text: str) -> None:
    assert tidy(decoded(data)) == text


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"%PDF-1.7 abc", "a PDF file"),
        (b"PK\x03\x04rest", "a ZIP or Office file"),
        (b"\x89PNG\r\n", "an image"),
        (b"abc\0def", "binary content"),
        (bytes(range(1, 32)) * 9, "binary content"),
        (b"\x81\x8d\x8f", "neither UTF-8 nor Windows-1252"),
    ],
)
def test_what_is_no_text_is_told_by_what_it_seems_to_be(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        decoded(data)


def test_of_a_page_remains_what_a_reader_sees() -> None:
    assert tidy(PAGE).split("\n\n") == [
        "Preisliste",
        "Preise & Fristen",
        "Die Säge kostet 99\u00a0€. Bis 5 < 6.",
        "eins  zwei",
    ]
    assert tidy("Ein Satz über <html> ist keine Seite.") == "Ein Satz über <html> ist keine Seite."
    assert tidy(f"<html>&#{'1' * 5000}; bleibt").endswith("bleibt")


def test_a_page_keeps_the_paragraphs_in_the_cells_of_a_table_apart() -> None:
    cells = "<tr><td><h1>Titel</h1><p>Ein<br>Satz.</p><td>Rand<tr><td>eins<td><td>drei"
    assert tidy(f"<html><table>{cells}</table><pre>a\n  b</pre>").split("\n\n") == [
        "Titel",
        "Ein Satz.",
        "Rand",
        "eins    drei",
        "a b",
    ]


def test_without_lxml_a_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(ConfigurationError, match="lxml is not installed"):
        tidy(PAGE)


def test_a_page_nested_too_deeply_is_unreadable() -> None:
    assert tidy("<html>" + "<div>" * 900 + "Text") == "Text"
    with pytest.raises(Unreadable, match="nested too deeply"):
        tidy("<html>" + "<div>" * 1100 + "Text")


async def test_a_text_in_the_request_that_is_nested_too_deeply_is_unreadable() -> None:
    source = Source(name="tief", text="<html>" + "<div>" * 1100 + "Text")
    assert (await Library().read(source)).unreadable == "an HTML page nested too deeply"


@pytest.mark.parametrize(
    "unit", ["<!--", "<a ", "<", "</", "<script>", "&#", '<a x="', "<a x='\"", "<p>", "<style></style>"]
)
def test_a_broken_page_takes_no_longer_than_a_whole_one(unit: str) -> None:
    started = time.thread_time()
    tidy("<html>" + unit * (200_000 // len(unit)))
    assert time.thread_time() - started < 3


@given(st.binary())
def test_any_bytes_are_a_text_or_unreadable(data: bytes) -> None:
    with suppress(Unreadable):
        assert "\0" not in tidy(decoded(data))
