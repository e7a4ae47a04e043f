"""The rules: correct types, with evidence from the text."""

from __future__ import annotations

import pytest

from duly.apps.documents.classification import zones
from duly.apps.documents.classification.classifier import classify
from duly.apps.documents.classification.models import DOC_TYPES, check_type_name
from duly.apps.documents.classification.rules import phrases
from duly.apps.documents.classification.zones import Zone, split_zones
from duly.core.errors import ContractError
from tests.apps.documents.classification.samples import samples


def test_synthetic_documents_of_all_types_are_classified_in_both_languages() -> None:
    made = samples(6)
    assert {one.doc_type for one in made} == set(DOC_TYPES)
    verdicts = [(one, classify(one.pages, one.name)) for one in made]
    wrong = [
        (one.doc_type, one.language, said.doc_type) for one, said in verdicts if said.doc_type != one.doc_type
    ]
    assert not wrong
    assert all(said.review == (said.doc_type == "other") for _, said in verdicts)


def test_evidence_quotes_the_text_and_its_page() -> None:
    for one in samples(1, seed=5):
        for said in classify(one.pages, "Rechnung_März.pdf").evidence:
            place = "Rechnung März" if said.page == 0 else " ".join(one.pages[said.page - 1].split())
            assert said.text in place
            assert said.term.strip("*") in said.text.lower()
            assert said.weight > 0
            assert (said.zone == "name") == (said.page == 0)


def test_the_title_of_a_page_weighs_more_than_its_body() -> None:
    filler = "Heute schien die Sonne über dem Tal. " * 40
    above, below = classify(f"Kontoauszug {filler}"), classify(f"{filler} Kontoauszug")
    assert [one.zone for one in (*above.evidence, *below.evidence)] == ["title", "body"]
    assert above.evidence[0].weight == 2 * below.evidence[0].weight
    assert above.confidence > below.confidence


def test_a_phrase_inside_of_a_longer_word_does_not_match() -> None:
    assert not classify("Die Abrechnungsstelle bleibt geschlossen.").evidence
    assert [one.term for one in classify("Rechnung").evidence] == ["rechnung"]


def test_equal_evidence_for_two_types_needs_review() -> None:
    torn = classify("Kontoauszug Gehaltsabrechnung")
    assert (torn.doc_type, torn.review) == ("other", True)
    nothing = classify("")
    assert (nothing.doc_type, nothing.review, nothing.confidence, nothing.evidence) == ("other", True, 0, ())


@pytest.mark.parametrize(
    "hostile",
    [
        "mahnung" * 200_000,
        "a" * 2_000_000,
        " " * 2_000_000 + "Rechnung",
        "İ" * 500_000,
        "\0\ud800" * 1_000,
    ],
)
def test_only_a_bounded_part_of_a_document_is_searched(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = 0
    real = Zone.find

    def find(self: Zone, phrase: str) -> int | None:
        nonlocal searched
        searched += len(self.lower)
        return real(self, phrase)

    monkeypatch.setattr(Zone, "find", find)
    assert classify([hostile] * 500, "x" * 10_000).doc_type in DOC_TYPES
    assert searched <= (zones.MAX_CHARACTERS + 1_000) * len(phrases())


def test_lowercase_text_keeps_its_positions() -> None:
    [_, head, _] = split_zones(["İSTANBUL İŞ BANKASI Kontoauszug"])
    assert len(head.text) == len(head.lower)
    assert "Kontoauszug" in classify("İ" * 50 + " Kontoauszug").evidence[0].text


@pytest.mark.parametrize("wrong", ["", "Invoice", "a b", "1st", "x" * 41, "rechnung\n"])
def test_an_invalid_type_name_is_refused(wrong: str) -> None:
    with pytest.raises(ContractError, match="doc_type"):
        check_type_name(wrong)
