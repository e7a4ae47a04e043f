"""The way out."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from duly.console.form import Form
from duly.console.routing import Act
from duly.console.visit import Visit
from duly.http import cookies


async def sign_out(visit: Visit, form: Form) -> Response:
    """End this log-in."""
    service, request = visit.service, visit.request
    await service.authenticator.log_out(request)
    answer = RedirectResponse(visit.outside("/login"), 303)
    cookies.clear_cookie(answer, request, secure=service.secure)
    return answer


ROUTES = (Act("/sign-out", sign_out, None),)
