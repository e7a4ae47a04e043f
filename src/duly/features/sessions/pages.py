"""Console page of the account: the principal, its sessions, and signing out."""

from __future__ import annotations

from functools import partial

from starlette.responses import RedirectResponse, Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit
from duly.http.authentication import cookies


async def account_page(visit: Visit) -> ConsolePage:
    """Show the principal, its scopes and its sessions."""
    service, request = visit.service, visit.request
    # The principal that signed in: an operator of the installation visits orgs under another name.
    principal = await service.authenticator.principal(request)
    token = cookies.session_token(request, secure=service.secure)
    sessions = await service.sessions.list(principal, token)
    return visit.page("account.html", title=visit.t("account.title"), principal=principal, sessions=sessions)


async def sign_out(visit: Visit, form: Form, *, all_sessions: bool = False) -> Response:
    """End this session, or all sessions of the same key, member or operator."""
    service, request = visit.service, visit.request
    await service.authenticator.sign_out(request, all_sessions=all_sessions)
    response = RedirectResponse(visit.outside("/login"), 303)
    cookies.clear_cookie(response, request, secure=service.secure)
    return response


ROUTES = (
    Show("/account", account_page, every=30.0),
    Act("/sign-out", sign_out, None),
    Act("/sign-out-everywhere", partial(sign_out, all_sessions=True), None),
)
