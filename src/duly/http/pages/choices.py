"""What the pages of documents let people choose from: types, statuses and folders."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import get_args
from uuid import UUID

from markupsafe import Markup

from duly.documents.classes.verdict import DOC_TYPES, TYPE_NAME
from duly.documents.shapes import DocumentStatus, Node
from duly.http.pages.render import fill
from duly.http.pages.texts import texts

_TYPE = re.compile(TYPE_NAME)
_CHOSEN = Markup("selected")
Below = Mapping[UUID | None, Sequence[Node]]


def wanted_type(given: str | None) -> str | None:
    """The type that an address names; what cannot be one was not asked for."""
    return given if given and _TYPE.fullmatch(given) else None


def type_word(language: str, doc_type: str | None) -> str:
    """A type in words; one of the org's own is its name."""
    return "" if doc_type is None else texts(language).get(f"doctype.{doc_type}", doc_type)


def type_options(language: str, chosen: str | None = None, *, also: str | None = None) -> Markup:
    """Every type that Duly knows, and the one that is chosen, or may be, if it is another."""
    marks = {f"is_{one}": _CHOSEN if one == chosen else "" for one in DOC_TYPES}
    known = fill("document_types.html", language, **marks)
    other = chosen or also
    if other is None or other in DOC_TYPES:
        return known
    return known + _option(language, other, other, chosen)


def status_options(language: str, chosen: str | None) -> Markup:
    """How far a document may be."""
    said = texts(language)
    known = get_args(DocumentStatus)
    return Markup().join(_option(language, one, said[f"status.{one}"], chosen) for one in known)


def folder_options(language: str, folders: Sequence[Node], chosen: UUID | None) -> Markup:
    """Folders by their paths."""
    picked = str(chosen)
    return Markup().join(_option(language, str(one.node_id), one.path, picked) for one in folders)


def folder_tree(language: str, folders: Sequence[Node], chosen: UUID | None) -> Markup:
    """Folders within folders. One below a folder that is closed to them stands at the top."""
    known = {one.node_id for one in folders}
    below: defaultdict[UUID | None, list[Node]] = defaultdict(list)
    for one in folders:
        below[one.parent_id if one.parent_id in known else None].append(one)
    return _branch(language, below, None, chosen)


def _branch(language: str, below: Below, parent: UUID | None, chosen: UUID | None) -> Markup:
    leaves = [
        fill(
            "folder_leaf.html",
            language,
            node_id=one.node_id,
            name=one.name,
            here=Markup('aria-current="true"') if one.node_id == chosen else "",
            below=_branch(language, below, one.node_id, chosen) if one.node_id in below else Markup(),
        )
        for one in below.get(parent, ())
    ]
    return fill("folder_list.html", language, folders=Markup().join(leaves)) if leaves else Markup()


def _option(language: str, value: str, word: str, chosen: str | None) -> Markup:
    mark = _CHOSEN if value == chosen else ""
    return fill("option.html", language, value=value, word=word, chosen=mark)
