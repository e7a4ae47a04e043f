"""Every error class has a stable code, and the tree in the docstring of the module matches the classes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import pytest

from duly.core import errors
from duly.core.errors import ContractError, DulyError, WaitTimeout

ROW = re.compile(r"^(?P<lead>[│├└─ ]*)(?P<name>[A-Z]\w+) {2,}(?P<code>[a-z_.]+)\b", re.MULTILINE)


def tree(cls: type[DulyError], depth: int = 0) -> Iterator[tuple[int, str, str]]:
    yield depth, cls.__name__, cls.code
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child, depth + 1)


def documented_tree() -> list[tuple[int, str, str]]:
    assert errors.__doc__ is not None
    return [(len(row["lead"]) // 4, row["name"], row["code"]) for row in ROW.finditer(errors.__doc__)]


CLASSES = [getattr(errors, name) for _, name, _ in tree(DulyError)]


def test_the_documented_tree_matches_the_classes() -> None:
    assert documented_tree() == list(tree(DulyError))


def test_every_class_of_the_module_is_in_the_tree() -> None:
    classes = {value for value in vars(errors).values() if isinstance(value, type)}
    assert classes == set(CLASSES)


def test_every_class_has_a_code_of_its_own() -> None:
    assert all("code" in vars(cls) for cls in CLASSES)
    assert len({cls.code for cls in CLASSES}) == len(CLASSES)


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_shows_its_field_and_its_fix(cls: type[DulyError]) -> None:
    assert str(cls("is too long", field="payload.name", fix="shorten it")) == (
        "payload.name: is too long (shorten it)"
    )
    assert str(cls("is too long")) == "is too long"


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_can_be_pickled(cls: type[DulyError]) -> None:
    sent = pickle.loads(pickle.dumps(cls("is too long", field="payload.name", fix="shorten it")))
    assert type(sent) is cls
    assert (sent.message, sent.field, sent.fix) == ("is too long", "payload.name", "shorten it")


def test_a_wait_timeout_is_a_builtin_timeout_error() -> None:
    with pytest.raises(TimeoutError):
        raise WaitTimeout("still running")


def test_payload_errors_are_contract_errors() -> None:
    refusals = {cls for cls in CLASSES if cls.code.startswith(("payload.", "contract."))}
    assert all(issubclass(cls, ContractError) for cls in refusals)
    assert len(refusals) == 5
