"""Validation of requests: errors name the field and a fix."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pydantic import ValidationError

from duly import errors
from duly.apps.analyze import AnalyzeRequest, Module, cost

BLOB = f"blob:{uuid.UUID(int=1)}/{'a' * 64}/"


def request(*sources: Any, **more: Any) -> dict[str, Any]:
    return {"sources": list(sources), **more}


FINE = {"name": "a.txt", "text": "Guten Tag."}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "sources"),
        (request(), "sources"),
        (request(*({"name": str(n), "text": ""} for n in range(201))), "sources"),
        (request(FINE, {"name": "b"}), "sources.1.text"),
        (request(FINE, {"name": "b", "text": "x", "blob": BLOB + "1"}), "sources.1.text"),
        (request(FINE, {"name": "b", "text": "x" * 100_001}), "sources.1.text"),
        (request({"name": "b", "text": "a\0b"}), "sources.0.text"),
        (request({"name": "b", "text": "a\ud800"}), "sources.0.text"),
        (request({"name": "b", "blob": "blob:invalid"}), "sources.0.blob"),
        (request({"name": "b", "blob": BLOB + str(5 * 2**20 + 1)}), "sources.0.blob"),
        (request({"name": "", "text": "x"}), "sources.0.name"),
        (request({"name": "x" * 101, "text": "x"}), "sources.0.name"),
        (request({"name": "a\x1b[2J", "text": "x"}), "sources.0.name"),
        (request(FINE, {"name": " a.txt ", "text": "x"}), "sources.1.name"),
        (request({**FINE, "path": "/etc"}), "sources.0.path"),
        (request(*({"name": str(n), "text": "ü" * 50_000} for n in range(2))), "sources"),
        (request(*({"name": str(n), "blob": BLOB + str(5 * 2**20)} for n in range(21))), "sources"),
        (request(FINE, modules=[]), "modules"),
        (request(FINE, modules=["size", "poetry"]), "modules.1"),
        (request(FINE, language="fr"), "language"),
        ("no object", "request"),
    ],
)
def test_an_error_names_its_field_and_a_fix(values: Any, field: str) -> None:
    with pytest.raises(errors.ContractError) as refused:
        AnalyzeRequest.read(values)
    assert refused.value.field == field
    assert refused.value.fix


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sources": "x"}, "must be a list of sources"),
        (request({"name": "a"}), "must have either text or blob"),
        (request({"name": "", "text": "x"}), "String should have at least 1 character"),
        (request("x"), "must be an object"),
        (request(FINE, modules=["foo"]), "no such module"),
    ],
)
def test_a_mistake_gives_a_single_error(values: Any, message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        AnalyzeRequest.model_validate(values)
    [error] = refused.value.errors()
    assert error["msg"] == message


def test_a_request_has_chunks_and_a_cost() -> None:
    parsed = AnalyzeRequest.read(
        request(
            {"name": "ü", "text": "äöü"},
            {"name": "b", "blob": BLOB + "1000"},
            modules=["terms", "size", "size"],
        )
    )
    assert parsed.modules == (Module.SIZE, Module.TERMS), "each once, in one order"
    assert [chunk.key for chunk in parsed.chunks] == ["ü/size", "ü/terms", "b/size", "b/terms"]
    assert cost(parsed) == 6 + 1000
    assert AnalyzeRequest.read(request(FINE)).modules == tuple(Module)
    assert AnalyzeRequest.model_validate_json(parsed.model_dump_json()) == parsed
