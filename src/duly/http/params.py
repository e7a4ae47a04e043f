"""What many routes take: pages, reasons, and models that are shown as they were read."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from duly.http.shapes import Strict

REASON_MAX = 500
NUMBER_MAX = 2**31 - 1
Reason = Annotated[
    str, Field(min_length=1, max_length=REASON_MAX, description="Why; it is kept in the audit trail.")
]
Text = Annotated[str, Field(min_length=1, max_length=500)]
After = Annotated[str | None, Query(max_length=4000, description="`after` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=500)]
Because = Annotated[
    str,
    Query(
        alias="reason",
        min_length=1,
        max_length=REASON_MAX,
        description="Why; it is kept in the audit trail. Here, because bodies of a DELETE get lost.",
    ),
]


class Why(Strict):
    """A change that needs no more than its reason."""

    reason: Reason


class Shown(BaseModel):
    """Something that was read, as it is shown: `Shown.model_validate(read)`."""

    model_config = ConfigDict(from_attributes=True, ser_json_timedelta="float")
