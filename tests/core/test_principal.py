"""Scopes, roles and principals."""

from __future__ import annotations

import uuid

import pytest

from duly import Actor, errors
from duly.core.principal import ROLE_SCOPES, Principal, Role, Scope


def test_each_role_includes_the_lower_one_and_none_has_the_platform_scope() -> None:
    viewer, operator, admin = (ROLE_SCOPES[role] for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN))
    assert viewer < operator < admin
    assert viewer == {Scope.READ}
    assert admin == {*Scope} - {Scope.PLATFORM}


def test_a_missing_scope_is_named() -> None:
    principal = Principal(uuid.uuid4(), Actor.user("u1"), ROLE_SCOPES[Role.VIEWER])
    principal.require(Scope.READ)
    assert (principal.may(Scope.READ), principal.may(Scope.WRITE)) == (True, False)
    with pytest.raises(errors.Forbidden, match="jobs:write"):
        principal.require(Scope.WRITE)
