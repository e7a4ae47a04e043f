"""Hits and their order."""

from __future__ import annotations

import pytest

from duly.apps.documents.search import compounds
from duly.apps.documents.search.models import FragmentPart
from tests.apps.documents.search.indexed_documents import IndexedDocuments


async def test_passages_with_rare_and_repeated_words_rank_first(documents: IndexedDocuments) -> None:
    await documents.put("a", "Der Vertrag über die Wohnung beginnt im Mai.")
    await documents.put("b", "Der Vertrag über die Garage beginnt im Juni.")
    await documents.put("c", "Der Vertrag über das Auto, ein Vertrag auf Zeit.")
    assert await documents.names("Vertrag Garage") == ["b", "c", "a"]
    found = await documents.find("Welche Garage?")
    assert [hit.name for hit in found.hits] == ["b"]
    assert (found.total, found.exact, found.more, found.corrected) == (1, True, False, {})
    assert found.hits[0].score > 0
    assert (found.hits[0].page, found.hits[0].chunk_index, found.hits[0].language) == (1, 0, "de")


async def test_stems_of_both_languages_are_found(documents: IndexedDocuments) -> None:
    await documents.put(
        "de", "Die Häuser der Mieter wurden verkauft und danach neu gestrichen.", language=None
    )
    await documents.put(
        "en", "The tenants were paying for the cleaning of all windows of the house.", language=None
    )
    assert [hit.language for hit in (await documents.find("Haus Fenster")).hits] == ["de"]
    assert await documents.names("how does a tenant pay") == ["en"]
    assert await documents.names("verkaufte Haeuser") == ["de"]


async def test_a_stop_word_of_the_other_language_is_searched(documents: IndexedDocuments) -> None:
    await documents.put("en", "A history of the war and of those who had to die in it.", language="en")
    await documents.put("de", "Das war die Geschichte, die er erzählte.", language="de")
    assert await documents.names("Vietnam war") == ["en"]
    assert await documents.names("was war die Geschichte") == ["de"]


async def test_umlauts_are_found_in_both_spellings(documents: IndexedDocuments) -> None:
    await documents.put("a", "Müller wohnt in der Straße am Fluss.")
    await documents.put("b", "Mueller wohnt in der Gasse am Berg.")
    for query in ("Straße", "Strasse", "strasse", "STRASSE"):
        assert await documents.names(query) == ["a"], query
    assert sorted(await documents.names("Müller")) == sorted(await documents.names("mueller")) == ["a", "b"]


@pytest.mark.skipif(not compounds.is_installed(), reason="HanTa is not installed")
async def test_compounds_are_found_by_their_parts_and_parts_by_their_compounds(
    documents: IndexedDocuments,
) -> None:
    await documents.put("a", "Die Betriebskostenabrechnung kommt im Herbst.")
    await documents.put("b", "Die Abrechnung der Kosten für den Betrieb kommt im Winter.")
    assert await documents.names("Abrechnung") == ["b", "a"]
    found = await documents.find("Betriebskostenabrechnung")
    assert [hit.name for hit in found.hits] == ["a", "b"]
    assert FragmentPart(text="Betriebskostenabrechnung", hit=True) in found.hits[0].fragments[0]
    assert FragmentPart(text="Abrechnung", hit=True) in found.hits[1].fragments[0]


def test_nouns_are_capitalized_words_or_all_words_of_a_lowercase_query() -> None:
    assert compounds.noun_positions(["Welche", "verschiedenen", "Datenbanken", "gibt", "es"]) == [0, 2]
    assert compounds.noun_positions(["welche", "datenbanken", "gibt", "es"]) == [0, 1, 2, 3]
    assert compounds.noun_positions(["Datenbanken", "vergleichen"]) == [0, 1], (
        "a first word is always capitalized"
    )


async def test_misspelled_words_are_corrected_and_reported(documents: IndexedDocuments) -> None:
    await documents.put("a", "Der Mietvertrag endet.", "Die Kündigungsfrist beträgt drei Monate.")
    for slip in ("Mitvertrag", "Mietvertarg", "Mietvertraag", "Nietvertrag"):
        found = await documents.find(slip)
        assert found.corrected == {slip: ("Mietvertrag",)}
        assert FragmentPart(text="Mietvertrag", hit=True) in found.hits[0].fragments[0]
    await documents.put("b", "Die Miete ist gezahlt, die Garage geputzt.")
    for slip, meant in (("Miehte", "Miete"), ("Garge", "Garage"), ("Garagee", "Garage"), ("Grage", "Garage")):
        assert (await documents.find(slip)).corrected == {slip: (meant,)}
    assert (await documents.find("Kundigungsfirst")).corrected == {"Kundigungsfirst": ("Kündigungsfrist",)}
    assert await documents.names("Elefant") == []
    assert (await documents.find("Mietvertrag")).corrected == {}


async def test_documents_without_text_are_found_by_name(documents: IndexedDocuments) -> None:
    await documents.put("Rechnung_2024-11_Stadtwerke.pdf")
    await documents.put("scan0001.pdf", "Ein Brief der Stadtwerke über Gas.")
    [first, second] = (await documents.find("Stadtwerke Rechnung 2024")).hits
    assert (first.name, first.chunk_index, first.page, first.text) == (first.text, None, None, first.name)
    [fragment] = first.fragments
    assert [(part.text, part.hit) for part in fragment] == [
        ("Rechnung", True),
        ("_", False),
        ("2024", True),
        ("-11_", False),
        ("Stadtwerke", True),
        (".pdf", False),
    ]
    assert second.name == "scan0001.pdf"
    assert (await documents.names("scan0001.pdf"))[0] == "scan0001.pdf"


async def test_parts_of_compound_numbers_and_words_are_found(documents: IndexedDocuments) -> None:
    await documents.put(
        "a", "Rechnung RE-2024-0815 über Miete/Pacht, IBAN DE89 3704, zu zahlen am 01.02.2024"
    )
    for query in ("0815", "RE-2024-0815", "Pacht", "Miete", "3704", "01.02.2024", "abrech-\nnung zahlen"):
        assert await documents.names(query) == ["a"], query


async def test_extreme_texts_are_indexed(documents: IndexedDocuments) -> None:
    await documents.put("a", "", "x" * 150_000, "ß" * 3_000 + " Miete", "Miete\n" * 30_000)
    assert await documents.names("Miete") == ["a", "a"]
    assert (await documents.find("y" * 500)).total == 0


async def test_markup_in_documents_stays_text(documents: IndexedDocuments) -> None:
    await documents.put("a", 'Das <script>alert("Vertrag")</script> im Vertrag\x00 und &amp; \ud800 Ende')
    [hit] = (await documents.find("Vertrag")).hits
    assert [piece.text for piece in hit.fragments[0] if piece.hit] == ["Vertrag", "Vertrag"]
    assert "".join(piece.text for piece in hit.fragments[0]) == hit.text
    assert "<script>" in hit.text
    assert "\x00" not in hit.text


async def test_a_fragment_shows_the_matches_of_a_long_passage(documents: IndexedDocuments) -> None:
    await documents.put(
        "a", "Anfang. " + "Nichts davon. " * 60 + "Die Kaution beträgt drei Mieten. " + "Ende. " * 60
    )
    [[*pieces]] = (await documents.find("Kaution Miete")).hits[0].fragments
    assert [piece.text for piece in pieces if piece.hit] == ["Kaution", "Mieten"]
    assert len("".join(piece.text for piece in pieces)) < 250


async def test_common_words_are_ranked_as_well_as_rare_ones(documents: IndexedDocuments) -> None:
    """More passages contain them than are candidates."""
    await documents.put("many", *["Der Vertrag über die Wohnung gilt."] * 700)
    await documents.put("often", "Vertrag, Vertrag und noch ein Vertrag über eine Wohnung, eine Wohnung.")
    await documents.put("rare", "Der Vertrag über die Scheune.")
    found = await documents.find("Vertrag Wohnung")
    assert found.hits[0].name == "often"
    assert not found.exact
    assert found.total > 500
    assert (await documents.names("Vertrag"))[0] == "often"
    assert (await documents.names("Vertrag Scheune"))[0] == "rare"
    pages = [await documents.find("Vertrag", limit=50, offset=offset) for offset in (0, 50, 100)]
    ids = [(hit.document_id, hit.chunk_index) for page in pages for hit in page.hits]
    assert len(set(ids)) == len(ids) == 150
    assert pages[0].more
