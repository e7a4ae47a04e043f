"""Message catalogues: every language has every message, and every message is used."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import duly
from duly.i18n import LANGUAGES, Messages, Text, messages, read_catalogue

SOURCE = Path(duly.__file__).parent
ENGLISH = messages("en")
_ID = r"[a-z][\w ,-]*(?:\.[\w ,-]+)*"
_CALL = re.compile(rf"""\b(?:t|textOr|text)\(\s*["']({_ID})["']""")
_QUOTED = re.compile(rf"""["'`]({_ID})["'`]""")
_CONCATENATED_IN_TEMPLATE = re.compile(
    r"""["']([a-z][\w.]*\.)["']\s*~\s*[\w.\[\]]+(?:\s*~\s*["']([\w.]*)["'])?"""
)
_INTERPOLATED_IN_SCRIPT = re.compile(r"`([a-z][\w.]*\.)\$\{[^}]+\}([\w.]*)`")


def _source_texts(suffix: str) -> dict[str, str]:
    return {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob(f"*{suffix}")}


def _ids_in_python(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return the string literals of a module, and the patterns of its f-strings."""
    literals, patterns = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            literals.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [re.escape(p.value) if isinstance(p, ast.Constant) else ".+" for p in node.values]
            if re.match(r"[a-z]\w*\\\.", parts[0]):
                patterns.add("".join(parts))
    return literals, patterns


def _used_message_ids() -> tuple[set[str], set[str]]:
    literals, patterns = set[str](), set[str]()
    for text in _source_texts(".py").values():
        module_literals, module_patterns = _ids_in_python(ast.parse(text))
        literals |= module_literals
        patterns |= module_patterns
    for text in _source_texts(".html").values():
        literals |= set(_QUOTED.findall(text))
        patterns |= {re.escape(a) + ".+" + re.escape(b) for a, b in _CONCATENATED_IN_TEMPLATE.findall(text)}
    for text in _source_texts(".js").values():
        literals |= set(_QUOTED.findall(text))
        patterns |= {re.escape(a) + ".+" + re.escape(b) for a, b in _INTERPOLATED_IN_SCRIPT.findall(text)}
    return literals, patterns


def _forms(text: Text) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_message_with_the_same_placeholders(language: str) -> None:
    known = messages(language)
    assert set(known) == set(ENGLISH)
    for message_id, text in known.items():
        english = ENGLISH[message_id]
        assert isinstance(text, str) == isinstance(english, str), f"{message_id}: plural in one language only"
        placeholders = {tuple(sorted(set(re.findall(r"\{(\w+)\}", form)) - {"n"})) for form in _forms(text)}
        assert placeholders == {
            tuple(sorted(set(re.findall(r"\{(\w+)\}", form)) - {"n"})) for form in _forms(english)
        }, message_id
        assert all(form.strip() for form in _forms(text)), message_id


def test_every_message_id_in_templates_and_scripts_exists() -> None:
    for suffix in (".html", ".js"):
        for name, text in _source_texts(suffix).items():
            assert set(_CALL.findall(text)) <= set(ENGLISH), name


def test_every_message_is_used() -> None:
    literals, patterns = _used_message_ids()
    interpolated = re.compile("|".join(sorted(patterns)))
    titles = {f"{path.stem}.title" for path in SOURCE.rglob("*.html")}
    unused = {
        message_id
        for message_id in set(ENGLISH) - literals - titles
        if not interpolated.fullmatch(message_id)
    }
    assert unused == set()


def test_the_plural_form_is_chosen_by_n(tmp_path: Path) -> None:
    (tmp_path / "de.po").write_text(
        'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
        'msgid "jobs"\nmsgid_plural "jobs"\nmsgstr[0] "{n} Auftrag"\nmsgstr[1] "{n} Aufträge"\n'
    )
    german = read_catalogue(tmp_path / "de.po", "de")
    assert [german.text("jobs", n=n) for n in (0, 1, 2)] == ["0 Aufträge", "1 Auftrag", "2 Aufträge"]


def test_placeholders_cannot_access_attributes_of_values() -> None:
    class ValueWithSecret:
        secret = "s"

        def __str__(self) -> str:
            return "loud"

    known = Messages("en", {"a": "{x}", "b": "{x.secret}"}, "n != 1")
    assert known.text("a", x=ValueWithSecret()) == "loud"
    with pytest.raises(AttributeError):
        known.text("b", x=ValueWithSecret())


def test_an_unknown_language_falls_back_to_english() -> None:
    assert messages("fr") is not messages("de")
    assert messages("fr").text("status.failed") == messages("en").text("status.failed")
