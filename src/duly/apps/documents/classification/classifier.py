"""What a document is, by the org's model where it has one that knows, else by the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from duly.apps.documents.classification import rules
from duly.apps.documents.classification.models import Verdict
from duly.apps.documents.classification.tfidf_model import Model


class Active(NamedTuple):
    """The model that an org works with."""

    version: str
    model: Model


def classify(pages: Sequence[str] | str, name: str = "", active: Active | None = None) -> Verdict:
    """A type with its confidence and evidence, or `other` for somebody to look at."""
    texts = [pages] if isinstance(pages, str) else pages
    ruled = rules.classify(texts, name)
    if active is None:
        return ruled
    return chosen(ruled, active.model.classify(texts, name, active.version), active.model)


def chosen(ruled: Verdict, learned: Verdict | None, model: Model) -> Verdict:
    """What the model says, unless it is unsure and the rules are not, or cannot know what they know."""
    if learned is None:
        return ruled
    beyond = ruled.doc_type not in model.labels and ruled.doc_type not in model.mistrusted
    return ruled if not ruled.review and (learned.review or beyond) else learned
