"""What documents can be told by whoever runs the installation."""

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

_CENTS: Mapping[Engine, float] = {"unstructured_fast": 0.1, "unstructured_hires": 1.0}


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """ReaderLimits, and services that are asked."""

    limits: ReaderLimits = ReaderLimits()  # noqa: RUF009 - frozen
    unstructured_url: str | None = None
    """Where the Unstructured service is; without it nothing is ever sent anywhere."""
    unstructured_key: str | None = field(default=None, repr=False)
    classifier: Classifier | None = None
    """Who else is asked what a document is, with consent."""
    imports: ImportOptions = field(default_factory=ImportOptions)
    """Where documents are brought in from."""
    quotas: Quotas = Quotas()  # noqa: RUF009 - frozen
    """What an org may keep."""
    cents_per_page: Mapping[Engine, float] = field(default_factory=lambda: dict(_CENTS))
    """What a page costs there: estimates before, actuals after."""

    def remote(self) -> Unstructured | None:
        """Who reads for the `unstructured_*` engines, if anybody."""
        if self.unstructured_url is None:
            return None
        return Unstructured(self.unstructured_url, self.unstructured_key or "")


def options_of(app: App) -> DocumentOptions:
    """What an application was told when documents were included."""
    told = app.included.get(SCHEMA.name)
    return told if isinstance(told, DocumentOptions) else DocumentOptions()
