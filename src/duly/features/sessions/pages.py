"""Who is logged in here and elsewhere, and the way out."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit
from duly.http.authentication import cookies


async def page(visit: Visit) -> Page:
    """Who they are, until when, and where else."""
    service, request = visit.service, visit.request
    # As whoever they have logged in: an operator of the installation looks at orgs under another name.
    who = await service.authenticator.principal(request)
    token = cookies.session_token(request, secure=service.secure)
    sessions = await service.sessions.list(who, token)
    return visit.page("account.html", title=visit.t("account.title"), who=who, sessions=sessions)


async def sign_out(visit: Visit, form: Form) -> Response:
    """End this log-in."""
    return await _left(visit, everywhere=False)


async def sign_out_everywhere(visit: Visit, form: Form) -> Response:
    """End all log-ins that stand for the same key, member or operator."""
    return await _left(visit, everywhere=True)


async def _left(visit: Visit, *, everywhere: bool) -> Response:
    service, request = visit.service, visit.request
    await service.authenticator.sign_out(request, all_sessions=everywhere)
    answer = RedirectResponse(visit.outside("/login"), 303)
    cookies.clear_cookie(answer, request, secure=service.secure)
    return answer


ROUTES = (
    Show("/account", page, every=30.0),
    Act("/sign-out", sign_out, None),
    Act("/sign-out-everywhere", sign_out_everywhere, None),
)
