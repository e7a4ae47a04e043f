"""The rules of the layout. Exceptions may only shrink: an entry that is no longer needed fails too."""

from __future__ import annotations

from collections import Counter

from tests.architecture import source

MAX_FILES_PER_FOLDER = 15
LARGE_FOLDERS = {
    "apps/documents": 22,
    "apps/documents/classes": 16,
    "apps/documents/engines/inside": 22,
    "apps/documents/imports": 20,
    "features/jobs": 16,
    "features/webhooks": 23,
}
SHARED_CLASS_NAMES = 46
BANNED_NAMES = {
    "apps/analyze": 65,
    "apps/documents": 316,
    "client": 1,
    "console": 28,
    "core": 1,
    "features": 450,
    "pages": 6,
    "settings.py": 1,
    "settings_sources.py": 1,
}
PRIVATE_STYLE = {
    "apps/analyze": 7,
    "apps/documents": 86,
    "console": 12,
    "db": 1,
    "embedded": 1,
    "features": 160,
    "pages": 3,
}
UNTYPED_KEYWORDS = {
    "cli/command.py: run": "passes on what the parser has checked",
    "console/visit.py: page": "the variables of a template",
    "console/visit.py: fill": "the variables of a template",
    "db/traced_cursor.py: execute": "passes on the arguments of psycopg",
    "db/traced_cursor.py: executemany": "passes on the arguments of psycopg",
    "features/audit/entries.py: record_entry": "the details of an entry are JSON",
    "features/audit/service.py: record": "the details of an entry are JSON",
    "features/webhooks/guarded_network.py: connect_unix_socket": "the signature of httpcore",
    "http/responses.py: list_model": "the fields of a pydantic model",
    "http/responses.py: page_model": "the fields of a pydantic model",
    "http/responses.py: response_model": "the fields of a pydantic model",
    "worker/job_log.py: log": "the fields of a log line",
}
UNTYPED_KEYWORDS_TO_MEND = 18


def _by_area(found: list[str]) -> dict[str, int]:
    """Count findings by package, and by application."""
    paths = [entry.partition(":")[0].split("/") for entry in found]
    return dict(Counter("/".join(path[: 2 if path[0] == "apps" else 1]) for path in paths))


def test_a_folder_holds_at_most_15_files() -> None:
    sizes = source.folder_sizes()
    assert {name: count for name, count in sizes.items() if count > MAX_FILES_PER_FOLDER} == LARGE_FOLDERS


def test_a_class_name_exists_once() -> None:
    shared = {name: modules for name, modules in source.classes().items() if len(modules) > 1}
    assert len(shared) == SHARED_CLASS_NAMES, shared


def test_no_name_contains_a_banned_word() -> None:
    found = source.banned_names()
    assert _by_area(found) == BANNED_NAMES, found


def test_no_text_speaks_of_somebody() -> None:
    found = source.private_style()
    assert _by_area(found) == PRIVATE_STYLE, found


def test_public_functions_have_no_untyped_keywords() -> None:
    found = set(source.untyped_keywords())
    assert set(UNTYPED_KEYWORDS) - found == set()
    assert len(found - set(UNTYPED_KEYWORDS)) == UNTYPED_KEYWORDS_TO_MEND, found - set(UNTYPED_KEYWORDS)
