"""What a document is taken for, how surely, and because of what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from duly.core.errors import ContractError

DOC_TYPES = (
    "rental_contract", "invoice", "bank_statement", "tax_notice", "insurance", "utility_bill", "reminder",
    "payslip", "identity_document", "contract", "letter", "other",
)  # fmt: skip
"""What the rules tell apart. An org may confirm types of its own, which its model learns."""
OTHER = "other"
TYPE_NAME = r"^[a-z][a-z0-9_]{1,39}$"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Evidence(_Value):
    """Something that spoke for a type: the words, where they stand, and how much they counted."""

    doc_type: str
    term: str
    """What was looked for: a phrase of the rules, or a term of the org's model."""
    zone: Literal["title", "body", "name"]
    page: int
    """From 1; 0 is the file's name."""
    text: str
    """What stands there, its spaces made one each."""
    weight: float


class Verdict(_Value):
    """A type, or `other` for somebody to look at."""

    doc_type: str
    confidence: float
    """From 0 to 1: by the rules how far it is ahead of the next, by a model how often it is right then."""
    review: bool
    """Whether it is too unsure to be believed."""
    evidence: tuple[Evidence, ...] = ()
    model_version: str


def checked_type(doc_type: str) -> str:
    """A name that a type may have."""
    if not re.search(TYPE_NAME, doc_type) or doc_type.endswith("\n"):
        raise ContractError(
            f"{doc_type[:40]!a} is no type of document",
            field="doc_type",
            fix=f"use one of {', '.join(DOC_TYPES)}, or a name of your own in small letters",
        )
    return doc_type


def best(scores: Mapping[str, float]) -> str:
    """The type with the highest score; of equals always the same one."""
    return max(sorted(scores), key=lambda doc_type: scores[doc_type])
