"""HTML pages: every word once, in elements of the right type."""

from __future__ import annotations

import pytest

from duly.apps.documents.engines.reader.models import ReadError
from duly.apps.documents.engines.reader.text_formats import read_html_page

CELLS = "<table>\n<tr>\n<td></td><th>Betrag</th></tr><tr><td>Wasser <td><p>90</p><p>Euro</p></table>"


@pytest.mark.parametrize(
    ("page", "blocks"),
    [
        ("<title>Haus</title><script>a<b</script><h1><div>Miete</div></h1>", "Title:Haus Title:Miete"),
        ("<h2>\n<p>Miete</p></h2><b><h2></h2></b><p>Text", "Title:Miete NarrativeText:Text"),
        ("<ul><li><p>eins</p><li>zwei</ul>danach", "ListItem:eins ListItem:zwei NarrativeText:danach"),
        ("<ol><li>a<ol><li>b</ol></ol>", "ListItem:a ListItem:b"),
        ("<p>Weg&nbsp;3<br>Ulm &amp; <b>Bonn</b></p>", "NarrativeText:Weg_3/Ulm_&_Bonn"),
        ("<pre>\na\n  b</pre>", "CodeSnippet:a/__b"),
        (CELLS, "Table:|Betrag/Wasser|90_Euro"),
        ("<table><tr><td>a<table><tr><td>b</table>c</table>", "Table:a Table:b NarrativeText:c"),
        ("<img alt='Plan'><p>ein <img alt='Pfeil'> Bild", "Image:Plan NarrativeText:ein_Pfeil_Bild"),
        ("Text ohne <i>alles", "NarrativeText:Text_ohne_alles"),
        ("<div></div>", ""),
        (
            "<p>&nbsp;</p><template><p>Muster</template><noscript><p>ohne Skript</noscript>",
            "NarrativeText:ohne_Skript",
        ),
        ("<fieldset><legend>Wer</legend>ich</fieldset>", "NarrativeText:Wer NarrativeText:ich"),
    ],
)
def test_a_page_is_read_as_elements(page: str, blocks: str) -> None:
    signs = str.maketrans(" \t\n", "_|/")
    assert " ".join(f"{e.type}:{e.text.translate(signs)}" for e in read_html_page(page, 400)) == blocks


@pytest.mark.parametrize("unit", ["<div>", "<div><br/></p>", "<b></i>", "<li><ul>", "<table><tr><td>"])
def test_a_page_nested_too_deeply_is_refused_whatever_its_end_tags_say(unit: str) -> None:
    assert read_html_page(unit * 100 + "Text", 400)[-1].text == "Text"
    with pytest.raises(ReadError) as refused:
        read_html_page(unit * 500 + "Text", 400)
    assert refused.value.code == "document.too_deep"
