"""Types by their words: right ones, with reasons that can be looked up."""

from __future__ import annotations

import pytest

from duly.apps.documents.classification import zones
from duly.apps.documents.classification.classifier import classify
from duly.apps.documents.classification.models import DOC_TYPES, check_type_name
from duly.apps.documents.classification.phrases import phrases
from duly.apps.documents.classification.zones import Part, parts
from duly.core.errors import ContractError
from tests.apps.documents.classification.samples import samples


def test_made_up_documents_of_all_types_are_told_apart_in_both_languages() -> None:
    made = samples(6)
    assert {one.doc_type for one in made} == set(DOC_TYPES)
    verdicts = [(one, classify(one.pages, one.name)) for one in made]
    wrong = [
        (one.doc_type, one.language, said.doc_type) for one, said in verdicts if said.doc_type != one.doc_type
    ]
    assert not wrong
    assert all(said.review == (said.doc_type == "other") for _, said in verdicts)


def test_evidence_is_what_stands_there_and_where() -> None:
    for one in samples(1, seed=5):
        for said in classify(one.pages, "Rechnung_März.pdf").evidence:
            place = "Rechnung März" if said.page == 0 else " ".join(one.pages[said.page - 1].split())
            assert said.text in place
            assert said.term.strip("*") in said.text.lower()
            assert said.weight > 0
            assert (said.zone == "name") == (said.page == 0)


def test_the_head_of_a_page_counts_more_than_what_follows() -> None:
    filler = "Heute schien die Sonne über dem Tal. " * 40
    above, below = classify(f"Kontoauszug {filler}"), classify(f"{filler} Kontoauszug")
    assert [one.zone for one in (*above.evidence, *below.evidence)] == ["title", "body"]
    assert above.evidence[0].weight == 2 * below.evidence[0].weight
    assert above.confidence > below.confidence


def test_a_word_inside_of_another_is_not_that_word() -> None:
    assert not classify("Die Abrechnungsstelle bleibt geschlossen.").evidence
    assert [one.term for one in classify("Rechnung").evidence] == ["rechnung"]


def test_what_speaks_for_two_types_alike_is_for_somebody_to_look_at() -> None:
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
def test_however_much_there_is_only_so_much_is_looked_at(
    hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    real = Part.find

    def find(self: Part, phrase: str) -> int | None:
        nonlocal looked
        looked += len(self.low)
        return real(self, phrase)

    monkeypatch.setattr(Part, "find", find)
    assert classify([hostile] * 500, "x" * 10_000).doc_type in DOC_TYPES
    assert looked <= (zones.MOST + 1_000) * len(phrases())


def test_letters_keep_their_places_when_they_are_made_small() -> None:
    [_, head, _] = parts(["İSTANBUL İŞ BANKASI Kontoauszug"])
    assert len(head.text) == len(head.low)
    assert "Kontoauszug" in classify("İ" * 50 + " Kontoauszug").evidence[0].text


@pytest.mark.parametrize("wrong", ["", "Invoice", "a b", "1st", "x" * 41, "rechnung\n"])
def test_a_type_has_a_plain_name(wrong: str) -> None:
    with pytest.raises(ContractError, match="doc_type"):
        check_type_name(wrong)
