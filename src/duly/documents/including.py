"""Documents in an application: tables, job types, the adapter, and who sees their jobs."""

from __future__ import annotations

from duly.client.app import App
from duly.documents import removal
from duly.documents.classes import jobs as classes
from duly.documents.exports import jobs as exports
from duly.documents.extraction import job as extraction
from duly.documents.extraction.asking import JOB_TYPE
from duly.documents.imports import job as imports
from duly.documents.options import DocumentOptions
from duly.documents.rules import SubjectRule
from duly.documents.schema import SCHEMA


def include(app: App, options: DocumentOptions | None = None) -> None:
    """Add documents to an application; again, it changes nothing."""
    if JOB_TYPE in app.registry:
        return
    chosen = options or DocumentOptions()
    app.told[SCHEMA.name] = chosen
    app.schemas.append(SCHEMA)
    app.subject_rules.append(SubjectRule(app))
    extraction.declare(app, chosen)
    removal.declare(app)
    classes.declare(app, chosen.classifier)
    imports.declare(app, chosen.imports)
    exports.declare(app)
