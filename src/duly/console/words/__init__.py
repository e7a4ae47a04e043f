"""Every text of the console, English and German side by side, by the page that it is on."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from duly.http.pages.texts import LANGUAGES, TEXTS, Text


def all_words(more: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, str]]:
    """The texts by language and key: those of the customers' pages, of the console, and `more`."""
    known = {key: said for name in _modules() for key, said in import_module(name).WORDS.items()}
    every = {**TEXTS, **{key: Text(*said) for key, said in {**known, **more}.items()}}
    return {language: {key: getattr(said, language) for key, said in every.items()} for language in LANGUAGES}


def _modules() -> list[str]:
    return [f"{__name__}.{found.name}" for found in iter_modules(__path__)]
