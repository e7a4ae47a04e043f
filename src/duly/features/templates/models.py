"""Message templates: their texts, keys and locales."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.errors import ContractError
from duly.features.arguments import required_text

DEFAULT_LOCALE = "en"
"""The locale of recipients without one, and the last fallback."""
KEY_PATTERN = r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*"
MAX_KEY_LENGTH = 100
LOCALE_PATTERN = "[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?"
MAX_SOURCE_LENGTH = {"subject": 1_000, "body": 32 * 1024}


class MessageText(NamedTuple):
    """Subject and body of a message: as a template, or rendered."""

    subject: str
    body: str


class OrgTemplate(BaseModel):
    """A template of an org, in one locale."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    template_key: str
    locale: str
    subject: str
    body: str
    updated_by: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class TemplatePage:
    """A page of templates; `after` is the cursor of the next page."""

    templates: tuple[OrgTemplate, ...]
    after: str | None


def checked_template_key(key: str) -> str:
    """Return a valid key of a template."""
    if len(required_text("template_key", key)) > MAX_KEY_LENGTH or not re.fullmatch(KEY_PATTERN, key):
        raise ContractError(
            f"{key!r} is not a template key",
            field="template_key",
            fix=f"use lower_case.words, up to {MAX_KEY_LENGTH} characters",
        )
    return key


def checked_locale(locale: str) -> str:
    """Return a language, with a region if there is one, in canonical case: `de`, `de-AT`."""
    if not re.fullmatch(LOCALE_PATTERN, required_text("locale", locale)):
        raise ContractError(f"{locale!r} is not a locale", field="locale", fix="use one like de, en or de-AT")
    language, dash, region = locale.partition("-")
    return language.lower() + dash + (region.upper() if len(region) == 2 else region.title())


def fallback_locales(locale: str) -> list[str]:
    """Return the locales in which a template is looked up, in this order: `de-AT`, `de`, `en`."""
    return [*dict.fromkeys((locale, locale.partition("-")[0], DEFAULT_LOCALE))]
