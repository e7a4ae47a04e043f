"""Scopes, roles and principals."""

from __future__ import annotations

import uuid

import pytest

from duly import Actor, errors
from duly.core.principal import ROLE_SCOPES, Principal, Role, Scope


def test_each_role_may_do_what_the_one_before_may_and_none_looks_after_the_installation() -> None:
    viewer, operator, admin = (ROLE_SCOPES[role] for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN))
    assert viewer < operator < admin
    assert viewer == {Scope.READ}
    assert admin == {*Scope} - {Scope.PLATFORM}


def test_what_a_credential_does_not_allow_is_named() -> None:
    who = Principal(uuid.uuid4(), Actor.user("u1"), ROLE_SCOPES[Role.VIEWER])
    who.require(Scope.READ)
    assert (who.may(Scope.READ), who.may(Scope.WRITE)) == (True, False)
    with pytest.raises(errors.Forbidden, match="jobs:write"):
        who.require(Scope.WRITE)
