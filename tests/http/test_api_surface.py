"""Paths, parameters and fields of the HTTP API are part of its contract."""

from __future__ import annotations

from tests.http.api_surface import FILE, surface


def test_no_path_parameter_or_field_of_the_api_changes_unnoticed() -> None:
    assert surface().splitlines() == FILE.read_text(encoding="utf-8").splitlines()
