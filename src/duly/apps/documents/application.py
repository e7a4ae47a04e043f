"""Documents in an application: tables, job types, the adapter, and who sees their jobs."""

from __future__ import annotations

from duly.apps.documents.classification import jobs as classification
from duly.apps.documents.exports import job as exports
from duly.apps.documents.extraction import job as extraction
from duly.apps.documents.extraction.service import JOB_TYPE
from duly.apps.documents.folders.job_subjects import DocumentSubjectRule
from duly.apps.documents.imports import job as imports
from duly.apps.documents.library import removal
from duly.apps.documents.options import DocumentOptions
from duly.apps.documents.schema import SCHEMA
from duly.jobs.application import App


def include(app: App, options: DocumentOptions | None = None) -> None:
    """Add documents to an application; again, it changes nothing."""
    if JOB_TYPE in app.registry:
        return
    chosen = options or DocumentOptions()
    app.included[SCHEMA.name] = chosen
    app.schemas.append(SCHEMA)
    app.subject_rules.append(DocumentSubjectRule(app))
    extraction.declare(app, chosen)
    removal.declare(app)
    classification.declare(app, chosen.classifier)
    imports.declare(app, chosen.imports)
    exports.declare(app)
