"""The HTML reader: it takes linear time on hostile pages, and analyses and documents read the same words."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import html_reader
from duly.apps.analyze.decoding import html_text
from duly.apps.documents.engines.reader.text_formats import read_html_page as read
from duly.html_reader import Block, TooDeep, read_html
from tests.apps.analyze.test_decoding import PAGE


def _numbered(unit: str) -> Callable[[int], str]:
    return lambda size: "".join(unit.format(number) for number in range(size // len(unit)))


def _repeated(unit: str, before: str = "") -> Callable[[int], str]:
    return lambda size: before + unit * (size // len(unit))


def _concatenated(one: Callable[[int], str], other: Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: one(size // 2) + other(size // 2)


HOSTILE = {
    **{unit: _repeated(unit) for unit in ("<", "</", "<!", "<?", "<a ", "</a ", "&", "&#", "&amp", "&nGt;")},
    **{unit: _repeated(unit) for unit in ("<!--", "<!-- --", "<!---->", "<![CDATA[", "<!doctype ", "<?php ")},
    **{
        unit: _repeated(unit)
        for unit in ("<script>", "<style></styl", "<title></titl", "<plaintext>", "<xmp>")
    },
    **{unit: _repeated(unit) for unit in ('<a x="', "<a x='\"", "<p>x", "<li>", "<br>", "<h1>", "<option>x")},
    **{unit: _repeated(unit) for unit in ("<div>", "<ul><li>", "<table>", "<table><tr><td>", "<table><a>")},
    **{unit: _repeated(unit) for unit in ("<b><p></b>", "<a><div>", "<svg>", "<template>", "<p><span></p>")},
    "text": _repeated("Wort "),
    "cells": _repeated("<tr><td>x", "<table>"),
    "text in a table": _repeated("x<b>y</b>", "<table>"),
    "one long attribute": _repeated("x", "<p title='"),
    "attributes twice": _repeated("a=1 ", "<p "),
    "many attributes": lambda size: "<p " + _numbered("a{}=1 ")(size) + ">",
    "many names": _numbered("<x{0}></x{0}>"),
    "a long name": _repeated("a", "<"),
    "a long number": _repeated("1", "&#"),
    "escaped scripts": _repeated("<!--<script>", "<script>"),
    "end tags of nothing": _concatenated(_repeated("<span>"), _repeated("</div>")),
    "paragraphs that are not open": _concatenated(_repeated("<span>"), _repeated("</p>")),
    "formatting to restore": _concatenated(_numbered("<b a{}>"), _repeated("<p>x")),
    "formatting to adopt": _concatenated(_numbered("<b {0}><i {0}>"), _repeated("x</b>")),
}
PAGES = [
    PAGE,
    "Text ohne <i>alles",
    "<title>Haus &amp; Hof</title><h1><p>Miete</p></h1><ul><li>eins<li>zwei</ul>danach",
    "<table><tr><td>a<table><tr><td><p>b<p>c<br>d</table>e<tr><td>f&nbsp;g<td></table>",
    "<p>ein <img alt='Pfeil'> Bild<img><script>a<b</script><template>t<p>u</template>",
    "<pre>\n a\n   b</pre><select><option>c<option>d</select><noscript><p>e</noscript>",
    "<textarea>f<b>g</textarea><svg><title>h</title></svg></div>i</p>j<![CDATA[k]]>l<?m?>n",
]
TAGS = "p div span b a li ul h1 table tr td th pre br img option svg script style template title"
PIECES = [
    *(f"<{end}{tag}>" for tag in TAGS.split() for end in ("", "/")),
    *(" ", "&nbsp;", "\n", "<!--", "-->", "<"),
]


def _seconds(page: str) -> float:
    """Return the CPU time of reading a page: without other processes, without the garbage of other tests."""
    times = []
    gc.disable()
    try:
        for _ in range(3):
            started = time.process_time()
            with suppress(TooDeep):
                read_html(page)
            times.append(time.process_time() - started)
    finally:
        gc.enable()
    return min(times)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_is_read_in_linear_time(name: str) -> None:
    # 16 times the length takes 16 times the time if that is linear, and 256 times if it is quadratic.
    short = max(_seconds(HOSTILE[name](20_000)), 0.005)
    assert _seconds(HOSTILE[name](320_000)) < 64 * short


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_makes_no_more_events_than_it_has_characters(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_reader, "_Builder", _Counting)
    monkeypatch.setattr(_Counting, "events", 0)
    page = HOSTILE[name](60_000)
    with suppress(TooDeep):
        read_html(page)
    assert _Counting.events <= len(page) + 10


class _Counting(html_reader._Builder):
    events = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        _Counting.events += 1
        super().start(tag, attributes)

    def end(self, tag: str) -> None:
        _Counting.events += 1
        super().end(tag)

    def data(self, text: str) -> None:
        _Counting.events += 1
        super().data(text)


def test_pages_are_parsed_on_a_thread_that_ends_and_frees_their_tag_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = []
    real = html_reader._parse

    def parse(page: str, max_depth: int) -> list[Block]:
        threads.append(threading.current_thread())
        return real(page, max_depth)

    monkeypatch.setattr(html_reader, "_parse", parse)
    read_html("<a-unique-tag-name>")
    assert threads[0] is not threading.current_thread()
    assert not threads[0].is_alive(), "lxml keeps names as long as their thread lives"


def test_a_long_page_is_read_to_its_end() -> None:
    first, last = read_html("<p>" + "Wört €" * 2_000_000 + "<p>Ende")
    assert len(first.rows[0][0]) == 12_000_000
    assert last.rows == [["Ende"]]


def test_the_chunk_size_does_not_change_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE + "".join(PAGES) * 3
    whole = read_html(page)
    for size in (1, 2, 7, 100):
        monkeypatch.setattr(html_reader, "_CHUNK", size)
        assert read_html(page) == whole


@pytest.mark.parametrize("page", ["", "\0", " ", "<!-- -->", "<!doctype html>", "</p>", "<p>&nbsp;</p>"])
def test_a_page_without_text_has_no_blocks(page: str) -> None:
    assert read_html(page) == []


def test_invalid_unicode_is_replaced() -> None:
    assert read_html("<p>a\ud800b\0c&#0;&#xD800;&#x110000;") == [
        Block("NarrativeText", [["a?bc\ufffd\ufffd\ufffd"]])
    ]


@pytest.mark.parametrize("page", PAGES)
def test_an_analysis_and_a_document_have_the_same_words(page: str) -> None:
    _check_words(page)


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3))).map("".join))
def test_an_analysis_and_a_document_have_the_same_words_for_any_page(page: str) -> None:
    _check_words(page)


def _check_words(page: str) -> None:
    assert html_text(page).split() == [word for e in read(page, 1_000) for word in e.text.split()]
