"""Classifications, confirmations and models as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from duly.apps.documents.classes.measure import Measure
from duly.apps.documents.classes.verdict import Evidence
from duly.apps.documents.shapes import Document


class Classification(BaseModel):
    """What was said of a document, and why."""

    classification_id: UUID
    document_id: UUID
    version: int
    doc_type: str
    confidence: float
    review: bool = Field(description="Whether somebody should look: it was too unsure to be believed.")
    suggested_node: UUID | None = Field(
        description="Where documents of this type belong. In the answer of a job: if it is for all."
    )
    evidence: Sequence[Evidence]
    model_version: str = Field(description="`rules-…`, the org's own `model-…`, or `remote-…`.")
    consent_given_by: str | None = Field(description="Who agreed that its text left the house, if it did.")
    created_at: datetime


class Confirmation(BaseModel):
    """What somebody said that a document is."""

    doc_type: str
    confirmed_by: str
    confirmed_at: datetime


class ClassHistory(BaseModel):
    """Everything that was said of a document, the newest first. A confirmation counts more."""

    classifications: Sequence[Classification]
    confirmations: Sequence[Confirmation]


class Unsure(BaseModel):
    """A document that somebody should look at."""

    document: Document
    classification: Classification = Field(
        description="What was said last; its evidence is for the best guess."
    )

    @property
    def guess(self) -> str | None:
        """The type that it may be, if anything spoke for one."""
        return next((one.doc_type for one in self.classification.evidence), None)


class FilingRule(BaseModel):
    """Where documents of a type belong."""

    doc_type: str
    node_id: UUID


class ClassModel(BaseModel):
    """What was learned from an org's confirmations."""

    model_version: str
    labels: Sequence[str]
    examples: int
    accuracy: float = Field(description="On documents that it had not seen.")
    rules_accuracy: float = Field(description="Of the rules alone, on the same documents.")
    active: bool = Field(description="Whether it is used: only one that beats the rules is.")
    job_id: UUID | None
    trained_at: datetime


class Training(BaseModel):
    """What `train_classifier` answers."""

    model_version: str
    active: bool
    examples: int
    labels: Sequence[str]
    accuracy: float
    rules_accuracy: float


class Evaluation(BaseModel):
    """What `evaluate_classifier` answers: confusion matrices and figures of each type."""

    documents: int
    rules: Measure
    model: Measure | None = Field(description="Each document judged by a model made without it.")
    why_no_model: str | None = None
    files: Sequence[str] = ()
