"""The first page: whether anything is wrong, and where."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from duly.console import sparklines as sparks
from duly.console.routing import Show
from duly.console.sparklines import Bars, Line
from duly.console.visit import Page, Visit
from duly.features.overview.models import HOUR, MINUTES, QueueActivity, QueueLine
from duly.features.overview.problems import troubles
from duly.http.options import EVERY_SUBJECT

_AGE = timedelta(seconds=4)
"""Boards are shared between all who look."""
_MINUTE = timedelta(minutes=1)


class Row(NamedTuple):
    """A queue with the pictures of its last hour."""

    line: QueueLine
    done: Bars
    waits: Line
    runs: Line


async def page(visit: Visit) -> Page:
    """What there is to do, what is being done, and what went wrong."""
    board = await visit.service.overview.board(None if visit.everywhere else visit.org_id, age=_AGE)
    sees_all = await visit.sees(EVERY_SUBJECT)
    if not sees_all:
        # Alerts and errors may tell of subjects that are not theirs; numbers do not.
        board = replace(board, alerts=(), kinds=())
    return visit.page(
        "overview.html",
        title=visit.t("overview.title"),
        board=board,
        sees_all=sees_all,
        troubles=troubles(visit, board),
        rows=[_row(line) for line in board.queues if not line.idle],
        idle=[line for line in board.queues if line.idle and board.platform],
        hour=board.hour,
        done=_done(board.minutes),
        failures=sparks.bars([0] * MINUTES, [one.failed for one in board.minutes]),
        runs=_spans(board.minutes, "run"),
        shortened=board.since > board.looked_at - HOUR + _MINUTE,
    )


def _row(line: QueueLine) -> Row:
    return Row(line, _done(line.minutes), _spans(line.minutes, "wait"), _spans(line.minutes, "run"))


def _done(minutes: tuple[QueueActivity, ...]) -> Bars:
    return sparks.bars([one.completed + one.canceled for one in minutes], [one.failed for one in minutes])


def _spans(minutes: tuple[QueueActivity, ...], what: str) -> Line:
    spans = [getattr(one, what)(0.95) for one in minutes]
    return sparks.line([None if span is None else span.total_seconds() for span in spans])


ROUTES = (Show("/", page, nav="overview.title"),)
