"""The options of the documents application, set by the operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from duly.apps.documents.classification.remote_classifier import Classifier
from duly.apps.documents.elements import Engine
from duly.apps.documents.engines import ReaderLimits, Unstructured
from duly.apps.documents.imports.options import ImportOptions
from duly.apps.documents.library.quotas import Quotas
from duly.apps.documents.schema import SCHEMA
from duly.jobs.application import App

_CENTS_PER_PAGE: Mapping[Engine, float] = {"unstructured_fast": 0.1, "unstructured_hires": 1.0}


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """Limits, quotas and external services."""

    limits: ReaderLimits = ReaderLimits()  # noqa: RUF009 - frozen
    unstructured_url: str | None = None
    """The URL of the Unstructured service; without it no file is ever sent to a service."""
    unstructured_key: str | None = field(default=None, repr=False)
    classifier: Classifier | None = None
    """An external classifier; it receives text only with consent."""
    imports: ImportOptions = field(default_factory=ImportOptions)
    quotas: Quotas = Quotas()  # noqa: RUF009 - frozen
    cents_per_page: Mapping[Engine, float] = field(default_factory=lambda: dict(_CENTS_PER_PAGE))
    """The price of a page per remote engine, for estimated and actual costs."""

    def remote(self) -> Unstructured | None:
        """Return the client of the `unstructured_*` engines, if the service is configured."""
        if self.unstructured_url is None:
            return None
        return Unstructured(self.unstructured_url, self.unstructured_key or "")


def options_of(app: App) -> DocumentOptions:
    """Return the options with which an application included documents."""
    options = app.included.get(SCHEMA.name)
    return options if isinstance(options, DocumentOptions) else DocumentOptions()
