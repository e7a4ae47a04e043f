"""Decoding of files, and cleaning of text and HTML."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.apps.analyze import Source, SourceReader
from duly.apps.analyze.decoding import UnreadableSource, clean_text, decode
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
def test_the_encoding_is_detected_by_content(data: bytes, text: str) -> None:
    assert clean_text(decode(data)) == text


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
def test_binary_data_is_refused_with_its_format(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableSource, match=why):
        decode(data)


def test_an_html_page_is_reduced_to_its_visible_text() -> None:
    assert clean_text(PAGE).split("\n\n") == [
        "Preisliste",
        "Preise & Fristen",
        "Die Säge kostet 99\u00a0€. Bis 5 < 6.",
        "eins  zwei",
    ]
    assert clean_text("Ein Satz über <html> ist keine Seite.") == "Ein Satz über <html> ist keine Seite."
    assert clean_text(f"<html>&#{'1' * 5000}; bleibt").endswith("bleibt")


def test_paragraphs_in_table_cells_stay_separate() -> None:
    cells = "<tr><td><h1>Titel</h1><p>Ein<br>Satz.</p><td>Rand<tr><td>eins<td><td>drei"
    assert clean_text(f"<html><table>{cells}</table><pre>a\n  b</pre>").split("\n\n") == [
        "Titel",
        "Ein Satz.",
        "Rand",
        "eins    drei",
        "a b",
    ]


def test_without_lxml_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(ConfigurationError, match="lxml is not installed"):
        clean_text(PAGE)


def test_a_page_nested_too_deeply_is_unreadable() -> None:
    assert clean_text("<html>" + "<div>" * 900 + "Text") == "Text"
    with pytest.raises(UnreadableSource, match="nested too deeply"):
        clean_text("<html>" + "<div>" * 1100 + "Text")


async def test_a_text_in_the_request_that_is_nested_too_deeply_is_unreadable() -> None:
    source = Source(name="tief", text="<html>" + "<div>" * 1100 + "Text")
    assert (await SourceReader().read(source)).unreadable == "an HTML page nested too deeply"


@pytest.mark.parametrize(
    "unit", ["<!--", "<a ", "<", "</", "<script>", "&#", '<a x="', "<a x='\"", "<p>", "<style></style>"]
)
def test_malformed_pages_are_read_in_linear_time(unit: str) -> None:
    started = time.thread_time()
    clean_text("<html>" + unit * (200_000 // len(unit)))
    assert time.thread_time() - started < 3


@given(st.binary())
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    with suppress(UnreadableSource):
        assert "\0" not in clean_text(decode(data))
