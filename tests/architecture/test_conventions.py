"""Conventions that no linter checks."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import duly
from tests.architecture.pages import ROOT


def _files() -> list[Path]:
    """Return the files that are, or would be, committed; also in a copy without git."""
    if (ROOT / ".git").exists():
        listed = ["git", "ls-files", "-co", "--exclude-standard"]
        names = subprocess.run(
            listed, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        return [ROOT / name for name in names if (ROOT / name).is_file()]
    ignored = {"__pycache__", "node_modules"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not any(part in ignored or part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]


TRACKED = _files()
SOURCES = [path for path in TRACKED if path.suffix == ".py"]


def test_no_pattern_repeats_a_group_possessively() -> None:
    # Before Python 3.11.5 such a group consumes what it does not match; `(?>(?:...)*)` means the same.
    possessive = re.compile(r"\)(?:[*+?]|\{[\d,{}]+\})\+")
    package = [path for path in SOURCES if ROOT / "src" in path.parents]
    assert [path.name for path in package if possessive.search(path.read_text(encoding="utf-8"))] == []


def test_the_public_names_are_these() -> None:
    assert duly.__all__ == [
        *("Actor", "AsyncClient", "Cancel", "Client", "Context", "DomainRecord", "Duly"),
        *("Fail", "Failure", "Handle", "Job", "JobSnapshot", "LifecyclePolicy", "Outcome"),
        *("Retry", "RetryPolicy", "Settings", "Snooze", "Status", "SyncContext", "SyncHandle"),
        *("context", "errors"),
    ]
    assert all(hasattr(duly, name) for name in duly.__all__)


@pytest.mark.parametrize("name", ["Adapter", "Call", "Category", "DulyError", "JobEvent", "Worker"])
def test_names_that_have_moved_still_work_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"duly.{name} is deprecated: import it from duly"):
        assert getattr(duly, name).__name__ == name


def test_no_file_is_too_long_to_read() -> None:
    assert {str(p): n for p in SOURCES if (n := len(p.read_text().splitlines())) > 400} == {}


def test_no_module_has_a_vague_name() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
    assert [p for p in SOURCES if p.stem in vague] == []


def test_every_package_has_a_docstring() -> None:
    packages = list(ROOT.glob("src/duly/*/__init__.py"))
    assert len(packages) >= 6
    for package in packages:
        assert re.match(r'"""[A-Z]', package.read_text()), package


def test_no_path_of_a_machine_and_no_registry_host_is_committed() -> None:
    # Spelled in parts, so that this file does not find itself.
    hosts = ["pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org"]
    machine = re.compile(r"(?<![\w.])/(?:root|home|work)/\w")
    for path in TRACKED:
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not machine.search(text), f"{path}: {machine.search(text)}"
        assert not any(host in text for host in hosts), path


def test_tests_wait_on_events_and_never_sleep() -> None:
    pattern = re.compile(r"\b(?:time|asyncio)\.sle" + r"ep\(")
    assert [p for p in SOURCES if "tests" in p.parts and pattern.search(p.read_text())] == []


def test_every_dependency_has_its_decision() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    dependencies = [*project["project"]["dependencies"], *(d for extra in extras for d in extra)]
    decided = " ".join(p.read_text().lower() for p in ROOT.glob("docs/decisions/*.md"))
    for dependency in [*dependencies, *project["dependency-groups"]["dev"]]:
        name = re.match(r"[\w-]+", dependency)[0].lower().removeprefix("pytest-")
        assert name in decided, name


_LOAD_A_PACKAGE = """
import importlib, pkgutil, sys, types
package = types.ModuleType("duly")  # without the package's __init__, which loads everything
package.__path__ = [sys.argv[1]]
sys.modules["duly"] = package
room = importlib.import_module(sys.argv[2])
for module in pkgutil.iter_modules(room.__path__):
    importlib.import_module(f"{sys.argv[2]}.{module.name}")
assert not [m for m in sys.modules if m.startswith(("duly.embedded", "duly.testing", "django", "sqlalchemy"))]
"""


@pytest.mark.parametrize("layer", ["duly.core", "duly.db", "duly.jobs"])
def test_a_lower_layer_loads_neither_the_embedded_server_nor_other_drivers(layer: str) -> None:
    subprocess.run([sys.executable, "-c", _LOAD_A_PACKAGE, ROOT / "src" / "duly", layer], check=True)
