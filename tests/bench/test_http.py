"""A minimal run of the status poll benchmark: both routes are counted; the ratio does not matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.test_other_measurements import run_benchmark


def test_polls_are_counted_beside_a_bare_route(tmp_path: Path) -> None:
    found = run_benchmark("http_polls", tmp_path, "--seconds", "0.4", "--rounds", "3", "--callers", "2")
    rates = found["rates"]
    assert [len(rates[kind]) for kind in ("bare", "status")] == [3, 3]
    assert all(rate > 0 for kind in rates for rate in rates[kind])
    ratios = [status / bare for status, bare in zip(rates["status"], rates["bare"], strict=True)]
    assert (found["ratios"], found["ratio"]) == (ratios, pytest.approx(sorted(ratios)[1]))
