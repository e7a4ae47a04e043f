"""Choices that several pages of documents offer: types, statuses and folders."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from fastapi import Request

from duly.apps.documents.classification.models import DOC_TYPES, TYPE_NAME
from duly.apps.documents.models import Folder
from duly.i18n import messages
from duly.pages.render import language_of

_TYPE = re.compile(TYPE_NAME)
FolderTree = list[tuple[Folder, "FolderTree"]]
"""Folders with the folders below them."""


def type_param(value: str | None) -> str | None:
    """Return the document type of a query parameter, or None if it cannot be one."""
    return value if value and _TYPE.fullmatch(value) else None


def type_choices(request: Request, *more: str | None) -> dict[str, Any]:
    """Return what templates need to name types: the built-in ones and those of the org among `more`."""
    name = type_name(language_of(request))
    known = [(one, name(one)) for one in DOC_TYPES]

    def types_for(other: str | None) -> list[tuple[str, str]]:
        return known if other is None or other in DOC_TYPES else [*known, (other, other)]

    types = known
    for one in more:
        types = types_for(one)
    return {"types": types, "types_for": types_for, "type_name": name}


def type_name(language: str) -> Callable[[str | None], str]:
    """Return a function that names a type; a type of the org's own is called by its name."""
    known = messages(language)

    def name(doc_type: str | None) -> str:
        key = f"doctype.{doc_type}"
        return known.text(key) if key in known else doc_type or ""

    return name


def folder_tree(folders: Sequence[Folder]) -> FolderTree:
    """Return the folders as a tree. A folder below one that is not visible stands at the top."""
    known = {folder.node_id for folder in folders}
    children: defaultdict[UUID | None, list[Folder]] = defaultdict(list)
    for folder in folders:
        children[folder.parent_id if folder.parent_id in known else None].append(folder)

    def branch(parent: UUID | None) -> FolderTree:
        return [(folder, branch(folder.node_id)) for folder in children.get(parent, ())]

    return branch(None)
