"""Document types, verdicts with their evidence, and the resources of classification."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from duly.apps.documents.classification.evaluation import Measure
from duly.apps.documents.models import Document
from duly.core.errors import ContractError

DOC_TYPES = (
    "rental_contract", "invoice", "bank_statement", "tax_notice", "insurance", "utility_bill", "reminder",
    "payslip", "identity_document", "contract", "letter", "other",
)  # fmt: skip
"""The types that the rules know. An org may confirm types of its own, which its model learns."""
OTHER = "other"
TYPE_NAME = r"^[a-z][a-z0-9_]{1,39}$"
ClassifierEngine = Literal["local", "remote"]
"""The rules and the org's model, or an external service."""


class Evidence(BaseModel):
    """A phrase or term that speaks for a type, where it occurs, and its weight."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    doc_type: str
    term: str
    """A phrase of the rules, or a term of the org's model."""
    zone: Literal["title", "body", "name"]
    page: int
    """From 1; 0 is the file's name."""
    text: str
    """The text around the term, with white space collapsed."""
    weight: float


class Verdict(BaseModel):
    """The type of a document, or `other` if a person has to review it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    doc_type: str
    confidence: float
    """From 0 to 1: the margin over the second type (rules), or the calibrated probability (model)."""
    review: bool
    """Whether the confidence is below the threshold."""
    evidence: tuple[Evidence, ...] = ()
    model_version: str


class Classification(BaseModel):
    """A stored verdict on a version of a document."""

    classification_id: UUID
    document_id: UUID
    version: int
    doc_type: str
    confidence: float
    review: bool = Field(description="Whether the confidence is too low, so that a person should review it.")
    suggested_node: UUID | None = Field(
        description="The folder for documents of this type. In a job's result only if everyone may read it."
    )
    evidence: Sequence[Evidence]
    model_version: str = Field(description="`rules-…`, the org's own `model-…`, or `remote-…`.")
    consent_given_by: str | None = Field(
        description="The principal that agreed to send the text to an external service, if it was sent."
    )
    created_at: datetime


class Confirmation(BaseModel):
    """A type that a person confirmed."""

    doc_type: str
    confirmed_by: str
    confirmed_at: datetime


class ClassificationHistory(BaseModel):
    """The classifications and confirmations of a document, newest first. A confirmation takes precedence."""

    classifications: Sequence[Classification]
    confirmations: Sequence[Confirmation]


class UnsureDocument(BaseModel):
    """A document whose type needs review."""

    document: Document
    classification: Classification = Field(
        description="The latest classification; its evidence is for the best guess."
    )

    @property
    def guess(self) -> str | None:
        """The most likely type, if there is evidence for any."""
        return next((evidence.doc_type for evidence in self.classification.evidence), None)


class FilingRule(BaseModel):
    """The folder for documents of a type."""

    doc_type: str
    node_id: UUID


class ClassifierModel(BaseModel):
    """A model trained on the confirmations of an org."""

    model_version: str
    labels: Sequence[str]
    examples: int
    accuracy: float = Field(description="Cross-validated: on documents outside of its training set.")
    rules_accuracy: float = Field(description="The accuracy of the rules on the same documents.")
    active: bool = Field(description="Whether it is in use: only if it is more accurate than the rules.")
    job_id: UUID | None
    trained_at: datetime


class Training(BaseModel):
    """The result of `train_classifier`."""

    model_version: str
    active: bool
    examples: int
    labels: Sequence[str]
    accuracy: float
    rules_accuracy: float


class Evaluation(BaseModel):
    """The result of `evaluate_classifier`: confusion matrices and metrics per type."""

    documents: int
    rules: Measure
    model: Measure | None = Field(description="Cross-validated: no model saw the documents it classified.")
    why_no_model: str | None = None
    files: Sequence[str] = ()


def check_type_name(doc_type: str) -> str:
    """Return the name of a type, or raise if it is not a valid one."""
    if not re.search(TYPE_NAME, doc_type) or doc_type.endswith("\n"):
        raise ContractError(
            f"{doc_type[:40]!a} is not a document type",
            field="doc_type",
            fix=f"use one of {', '.join(DOC_TYPES)}, or a name of your own in small letters",
        )
    return doc_type


def best_type(scores: Mapping[str, float]) -> str:
    """Return the type with the highest score; a tie goes to the first by name."""
    return max(sorted(scores), key=lambda doc_type: scores[doc_type])
