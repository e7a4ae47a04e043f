"""Include documents in an application: schema, job types, reconciliation, and the rule for job subjects."""

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
    """Include documents in an application. Idempotent."""
    if JOB_TYPE in app.registry:
        return
    options = options or DocumentOptions()
    app.included[SCHEMA.name] = options
    app.schemas.append(SCHEMA)
    app.subject_rules.append(DocumentSubjectRule(app))
    extraction.declare(app, options)
    removal.declare(app)
    classification.declare(app, options.classifier)
    imports.declare(app, options.imports)
    exports.declare(app)
