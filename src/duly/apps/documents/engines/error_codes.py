"""Every code that reading a file can end with, and what it says. None of them is ever renamed."""

from __future__ import annotations

from collections.abc import Mapping

CODES: Mapping[str, str] = {
    "document.empty": "There is nothing in it.",
    "document.unsupported": "It is of a kind that is not read.",
    "document.encrypted": "It asks for a password.",
    "document.broken": "It is damaged: what its kind promises is not there.",
    "document.too_large": "It is larger, has more text, or needs more memory, than a file may.",
    "document.too_slow": "It takes longer than a file may.",
    "document.too_deep": "Its parts lie deeper within one another than a file needs.",
    "document.bomb": "It unpacks to far more than it is.",
    "document.hostile": "It holds what only an attack needs, such as names that lead out of the archive.",
    "remote.refused": "The remote service does not take it, or not from us.",
    "remote.nonsense": "The remote service answered with something that is no list of elements.",
}

WARNINGS: Mapping[str, str] = {
    "page.plain": "Its structure could not be told; it was read line by line.",
    "page.unreadable": "It could not be read, and the others could.",
    "page.layout_missing": "The parts of the page could not be told; its text is as it was found.",
    "page.picture": "Most of it is a picture, which was not read.",
    "page.unsure": "The recognition was not sure of what it read.",
    "page.fonts_broken": "Its text layer is no language; its picture was read instead.",
    "office.pictures": "It has pictures beside its text, which were not read.",
    "mail.attachments": "It has attachments, which are named but not read.",
}


def sentence(code: str) -> str:
    """What a code says."""
    return CODES.get(code) or WARNINGS[code]
