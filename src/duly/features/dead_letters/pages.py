"""Dead letters: by kind of failure; one is replayed as a canary, then the rest at a pace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit
from duly.core.errors import NotFound
from duly.core.principal import Scope
from duly.features.dead_letters.service import MOST_COUNTED, DeadLetter, DeadLetterGroup
from duly.http.options import EVERY_SUBJECT

AT_ONCE = 1_000
"""So many letters are replayed or discarded by one click."""
_LETTERS = 20


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of failure, in one org or in several."""

    fingerprint: str
    job_type: str
    error_code: str
    error_class: str
    error_message: str
    letters: int
    at_least: bool
    first: datetime
    last: datetime
    orgs: int


async def page(visit: Visit) -> Page:
    """The kinds of failures, or one; for who may not see every subject, the letters that they may see."""
    if visit.query.get("fingerprint"):
        return await kind(visit)
    title = visit.t("dead.title")
    if visit.everywhere:
        return visit.page(
            "dead_letters.html", title=title, kinds=merged(await _everywhere(visit)), letters=None
        )
    if await visit.sees(EVERY_SUBJECT):
        groups = await visit.service.dead_letters.groups(visit.org_id)
        return visit.page("dead_letters.html", title=title, kinds=merged(groups), letters=None)
    found = await visit.service.dead_letters.list(visit.org_id, limit=50, after=visit.query.get("after"))
    return visit.page(
        "dead_letters.html",
        title=title,
        kinds=[],
        letters=await _seen(visit, found.letters),
        older=found.after and visit.here(after=found.after),
        newest=visit.here(after=None) if visit.query.get("after") else None,
    )


async def kind(visit: Visit) -> Page:
    """One kind: what happened, what is open, and how those fare that were done again."""
    fingerprint = visit.params.get("fingerprint") or visit.query["fingerprint"]
    if visit.everywhere:
        groups = [one for one in await _everywhere(visit) if one.fingerprint == fingerprint]
        if not groups:
            raise NotFound("no such kind")
        return visit.page(
            "dead_letter_orgs.html",
            title=visit.t("dead.kind"),
            kind=merged(groups)[0],
            groups=groups,
        )
    await visit.service.check_everything(visit.caller)
    found = await visit.service.dead_letters.kind(visit.org_id, fingerprint)
    letters = await visit.service.dead_letters.list(visit.org_id, fingerprint=fingerprint, limit=_LETTERS)
    canary = next((one for one in found.successors if str(one.job_id) == visit.query.get("canary")), None)
    return visit.page(
        "dead_letter_group.html",
        title=visit.t("dead.kind"),
        kind=found,
        letters=letters.letters,
        canary=canary,
        more=found.letters > len(letters.letters),
        at_once=AT_ONCE,
        at_least=found.letters >= MOST_COUNTED,
    )


async def canary(visit: Visit, form: Form) -> Response:
    """Replay one, and watch how it fares."""
    fingerprint = await _to_change(visit)
    job_id: UUID = form.id("job_id")
    letter = await visit.service.dead_letters.get(visit.org_id, job_id)
    if letter.fingerprint != fingerprint:
        raise NotFound("no such letter")
    handle = await visit.service.dead_letters.replay(visit.org_id, job_id, visit.actor, form.reason)
    return visit.done("dead.canary.sent", to=f"/dead/{fingerprint}", query={"canary": handle.job_id})


async def replay(visit: Visit, form: Form) -> Response:
    """Replay the rest, at a pace."""
    fingerprint = await _to_change(visit)
    done = await visit.service.dead_letters.replay_many(
        visit.org_id,
        fingerprint=fingerprint,
        per_second=form.number("per_second"),
        limit=AT_ONCE,
        actor=visit.actor,
        reason=form.reason,
    )
    said = "dead.replayed.left" if done.left else "dead.replayed"
    return visit.done(said, to=f"/dead/{fingerprint}", n=len(done.replayed), left=len(done.left))


async def discard(visit: Visit, form: Form) -> Response:
    """Nothing more is done about them."""
    fingerprint = await _to_change(visit)
    done = await visit.service.dead_letters.discard_many(
        visit.org_id, fingerprint=fingerprint, limit=AT_ONCE, actor=visit.actor, reason=form.reason
    )
    return visit.done("dead.discarded", to=f"/dead/{fingerprint}", n=done)


def merged(groups: Iterable[DeadLetterGroup]) -> list[Kind]:
    """The kinds, each once; the latest first, whose words stand for all."""
    found: dict[str, list[DeadLetterGroup]] = {}
    for group in groups:
        found.setdefault(group.fingerprint, []).append(group)
    return [
        Kind(
            fingerprint=some[0].fingerprint,
            job_type=some[0].job_type,
            error_code=some[0].error_code,
            error_class=some[0].error_class,
            error_message=some[0].error_message,
            letters=sum(one.letters for one in some),
            at_least=any(one.letters >= MOST_COUNTED for one in some),
            first=min(one.first_dead_at for one in some),
            last=max(one.last_dead_at for one in some),
            orgs=len(some),
        )
        for some in found.values()
    ]


async def _everywhere(visit: Visit) -> list[DeadLetterGroup]:
    return await visit.service.dead_letters.groups_everywhere()


async def _seen(visit: Visit, letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """Those that they may see; one that has outlived its job may be about anything."""
    found = [(one, one.subject_id if one.kept else EVERY_SUBJECT) for one in letters]
    open_to_them = await visit.seen([about for _, about in found])
    return [one for one, about in found if about in open_to_them]


async def _to_change(visit: Visit) -> str:
    """The kind, if they may change what becomes of all its letters; of one org."""
    if visit.everywhere:
        raise NotFound("choose an org first")
    await visit.service.check_everything(visit.caller, "change")
    return visit.params["fingerprint"]


ROUTES = (
    Show("/dead", page, nav="dead.title", every=10.0),
    Show("/dead/{fingerprint}", kind, every=3.0),
    Act("/dead/{fingerprint}/canary", canary, Scope.OPERATE, kind),
    Act("/dead/{fingerprint}/replay", replay, Scope.OPERATE, kind),
    Act("/dead/{fingerprint}/discard", discard, Scope.OPERATE, kind),
)
