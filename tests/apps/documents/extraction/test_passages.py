"""Passages contain all text of the elements, and their spans are exact."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from duly.apps.documents.elements import Element, PageElements, Passage
from duly.apps.documents.extraction.passages import split_passages

TYPES = st.sampled_from(["Title", "NarrativeText", "ListItem", "Table", "Header"])
TEXTS = st.text(st.sampled_from("ab ä.!\n\t"), max_size=90)
PAGES = st.lists(st.lists(st.builds(Element, type=TYPES, text=TEXTS), max_size=7), max_size=4)


def pages_of(elements: list[list[Element]]) -> list[PageElements]:
    return [
        PageElements(number=at, state="text", elements=tuple(some)) for at, some in enumerate(elements, 1)
    ]


def without_spaces(text: str) -> str:
    return "".join(text.split())


@settings(deadline=None)
@given(PAGES, st.integers(10, 60))
def test_no_text_is_lost_and_every_span_is_right(elements: list[list[Element]], size: int) -> None:
    pages = pages_of(elements)
    found = list(split_passages(pages, size))
    assert [passage.index for passage in found] == list(range(len(found)))
    for page in pages:
        own = [passage for passage in found if passage.page == page.number]
        spans = [(span.type, without_spaces(p.text[span.start : span.end])) for p in own for span in p.spans]
        assert "".join(text for _, text in spans) == "".join(without_spaces(e.text) for e in page.elements)
        assert all(text for _, text in spans)
        types = [kind for kind, _ in spans]
        assert [t for i, t in enumerate(types) if not i or t != types[i - 1]] == _changes(page)
    for passage in found:
        _check(passage, size)


def _changes(page: PageElements) -> list[str]:
    types = [element.type for element in page.elements if element.text.strip()]
    return [kind for i, kind in enumerate(types) if not i or kind != types[i - 1]]


def _check(passage: Passage, size: int) -> None:
    assert passage.text == "\n\n".join(passage.text[span.start : span.end] for span in passage.spans)
    headings = [span.type == "Title" for span in passage.spans]
    assert headings == sorted(headings, reverse=True), "headings come first"
    others = [span.type for span in passage.spans if span.type != "Title"]
    assert passage.type == (others[0] if others else "Title")
    assert len(passage.text) <= 6 * size + 2


def page(*elements: tuple[str, str]) -> list[PageElements]:
    return pages_of([[Element(type=kind, text=text) for kind, text in elements]])


def test_elements_stay_under_their_heading() -> None:
    found = list(
        split_passages(page(("NarrativeText", "Vorab."), ("Title", "§ 1"), ("NarrativeText", "Miete.")))
    )
    assert [passage.text for passage in found] == ["Vorab.", "§ 1\n\nMiete."]
    assert [passage.type for passage in found] == ["NarrativeText", "NarrativeText"]


def test_a_long_paragraph_is_split_at_the_end_of_a_sentence() -> None:
    sentence = "Der Vermieter rechnet jährlich ab. "
    found = list(split_passages(page(("NarrativeText", sentence * 60))))
    assert len(found) == 3
    assert all(passage.text.endswith("ab.") and 500 < len(passage.text) <= 1000 for passage in found[:-1])


def test_a_table_is_split_between_rows_only_above_a_limit() -> None:
    row = "Wasser\t12,50 €\n"
    assert len(list(split_passages(page(("Table", row * 200))))) == 1
    parts = list(split_passages(page(("Table", row * 2000))))
    assert len(parts) > 5
    assert all(part.text.startswith("Wasser") and part.text.endswith("€") for part in parts)


def test_a_text_without_spaces_is_split_in_linear_time() -> None:
    assert len(list(split_passages(page(("NarrativeText", "x" * 2_000_000))))) == 2000
