"""Console pages of dead letters, by kind of failure: replay one as a canary, then the rest at a rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit
from duly.core.errors import NotFound
from duly.core.principal import Scope
from duly.features.dead_letters.models import MAX_LETTERS_COUNTED, DeadLetter, DeadLetterGroup
from duly.http.options import EVERY_SUBJECT

MAX_LETTERS_PER_ACTION = 1_000
_LETTERS_PER_GROUP = 20
_PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One kind of failure, in one org or in several."""

    latest: DeadLetterGroup
    letters: int
    at_least: bool
    first: datetime
    last: datetime
    orgs: int


async def list_page(visit: Visit) -> ConsolePage:
    """Show the groups; to visitors who may not see every subject, the letters that they may see."""
    if visit.query.get("fingerprint"):
        return await group_page(visit)
    title, dead_letters = visit.t("dead_letters.title"), visit.service.dead_letters
    if visit.all_orgs or await visit.is_visible(EVERY_SUBJECT):
        groups = await (
            dead_letters.groups_of_all_orgs() if visit.all_orgs else dead_letters.groups(visit.org_id)
        )
        return visit.page("dead_letters.html", title=title, groups=merge_orgs(groups), letters=None)
    page = await dead_letters.list(visit.org_id, limit=_PAGE_SIZE, after=visit.query.get("after"))
    return visit.page(
        "dead_letters.html",
        title=title,
        groups=[],
        letters=await _visible(visit, page.letters),
        older=page.after and visit.here(after=page.after),
        newest=visit.here(after=None) if visit.query.get("after") else None,
    )


async def group_page(visit: Visit) -> ConsolePage:
    """Show one kind of failure: its error, its open letters, and the new jobs of the resolved ones."""
    fingerprint = visit.params.get("fingerprint") or visit.query["fingerprint"]
    dead_letters, title = visit.service.dead_letters, visit.t("dead_letters.group")
    if visit.all_orgs:
        groups = [one for one in await dead_letters.groups_of_all_orgs() if one.fingerprint == fingerprint]
        if not groups:
            raise NotFound("no such kind of failure")
        return visit.page("dead_letter_orgs.html", title=title, group=groups[0], groups=groups)
    await visit.service.check_everything(visit.requester)
    group = await dead_letters.group(visit.org_id, fingerprint)
    letters = await dead_letters.list(visit.org_id, fingerprint=fingerprint, limit=_LETTERS_PER_GROUP)
    canary_id = visit.query.get("canary")
    return visit.page(
        "dead_letter_group.html",
        title=title,
        group=group,
        letters=letters.letters,
        canary=next((one for one in group.successors if str(one.job_id) == canary_id), None),
        more=group.letters > len(letters.letters),
        max_letters=MAX_LETTERS_PER_ACTION,
        at_least=group.letters >= MAX_LETTERS_COUNTED,
    )


async def replay_canary(visit: Visit, form: Form) -> Response:
    """Replay one letter as a canary."""
    fingerprint = await _changeable_group(visit)
    job_id: UUID = form.id("job_id")
    letter = await visit.service.dead_letters.get(visit.org_id, job_id)
    if letter.fingerprint != fingerprint:
        raise NotFound("no such letter")
    handle = await visit.service.dead_letters.replay(visit.org_id, job_id, visit.actor, form.reason)
    return visit.done(
        "dead_letters.canary.started", to=f"/dead/{fingerprint}", query={"canary": handle.job_id}
    )


async def replay(visit: Visit, form: Form) -> Response:
    """Replay the open letters of a group at a rate."""
    fingerprint = await _changeable_group(visit)
    report = await visit.service.dead_letters.replay_many(
        visit.org_id,
        fingerprint=fingerprint,
        per_second=form.number("per_second"),
        limit=MAX_LETTERS_PER_ACTION,
        actor=visit.actor,
        reason=form.reason,
    )
    message = "dead_letters.replayed.failed" if report.left else "dead_letters.replayed"
    return visit.done(message, to=f"/dead/{fingerprint}", n=len(report.replayed), left=len(report.left))


async def discard(visit: Visit, form: Form) -> Response:
    """Discard the open letters of a group."""
    fingerprint = await _changeable_group(visit)
    count = await visit.service.dead_letters.discard_many(
        visit.org_id,
        fingerprint=fingerprint,
        limit=MAX_LETTERS_PER_ACTION,
        actor=visit.actor,
        reason=form.reason,
    )
    return visit.done("dead_letters.discarded", to=f"/dead/{fingerprint}", n=count)


def merge_orgs(groups: Iterable[DeadLetterGroup]) -> list[GroupRow]:
    """Return one row per kind of failure, latest first, with the message of the latest group."""
    merged: dict[str, list[DeadLetterGroup]] = {}
    for group in groups:
        merged.setdefault(group.fingerprint, []).append(group)
    return [
        GroupRow(
            latest=same[0],
            letters=sum(one.letters for one in same),
            at_least=any(one.letters >= MAX_LETTERS_COUNTED for one in same),
            first=min(one.first_dead_at for one in same),
            last=max(one.last_dead_at for one in same),
            orgs=len(same),
        )
        for same in merged.values()
    ]


async def _visible(visit: Visit, letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """Return the letters that the visitor may see; one without a job may be about any subject."""
    subjects = [(one, one.subject_id if one.job_retained else EVERY_SUBJECT) for one in letters]
    visible = await visit.visible_subjects([subject for _, subject in subjects])
    return [one for one, subject in subjects if subject in visible]


async def _changeable_group(visit: Visit) -> str:
    """Return the fingerprint of the page, if the visitor may change all letters of the group in one org."""
    if visit.all_orgs:
        raise NotFound("choose an org first")
    await visit.service.check_everything(visit.requester, "change")
    return visit.params["fingerprint"]


ROUTES = (
    Show("/dead", list_page, nav="dead_letters.title", every=10.0),
    Show("/dead/{fingerprint}", group_page, every=3.0),
    Act("/dead/{fingerprint}/canary", replay_canary, Scope.OPERATE, group_page),
    Act("/dead/{fingerprint}/replay", replay, Scope.OPERATE, group_page),
    Act("/dead/{fingerprint}/discard", discard, Scope.OPERATE, group_page),
)
