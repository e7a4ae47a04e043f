"""The rules of the layout. Exceptions may only shrink: an entry that is no longer needed fails too."""

from __future__ import annotations

from tests.architecture import source

MAX_FILES_PER_FOLDER = 15
BANNED_NAMES = {
    "app.py: watched": "a deprecated name of 0.9",
    "client/responses.py: shown": "a field of the HTTP API",
    "core/freshness.py: shown": "a field of the HTTP API",
    "features/alerts/models.py: seen_at": "a field of the HTTP API",
    "features/audit/models.py: kept_since": "a field of the HTTP API",
    "features/dead_letters/service.py: groups_everywhere": "a deprecated name of 0.9",
    "features/jobs/service.py: glance": "a deprecated name of 0.9",
    "features/jobs/service.py: list_everywhere": "a deprecated name of 0.9",
    "features/notifications/models.py: wanted": "a field of the HTTP API",
    "features/notifications/preferences.py: wanted": "a field of the HTTP API",
    "features/notifications/routes.py: wanted": "a field of the HTTP API",
    "features/subscriptions/models.py: told_at": "a field of the HTTP API",
}
PRIVATE_STYLE = {"embedded/account.py: nobody": "the name of a Unix account"}
UNTYPED_KEYWORDS = {
    "apps/documents/engines/reader_process.py: send": "the fields of a JSON message",
    "cli/command.py: run": "passes on what the parser has checked",
    "console/visit.py: done": "the values of a message",
    "console/visit.py: fill": "the variables of a template",
    "console/visit.py: here": "the parameters of a query",
    "console/visit.py: link": "the parameters of a query",
    "console/visit.py: page": "the variables of a template",
    "console/visit.py: t": "the values of a message",
    "db/traced_cursor.py: execute": "passes on the arguments of psycopg",
    "db/traced_cursor.py: executemany": "passes on the arguments of psycopg",
    "features/audit/entries.py: record_entry": "the details of an entry are JSON",
    "features/audit/service.py: record": "the details of an entry are JSON",
    "features/doctor/target.py: read": "the values of a statement",
    "features/doctor/target.py: read_as_engine": "the values of a statement",
    "http/responses.py: list_model": "the fields of a pydantic model",
    "http/responses.py: page_model": "the fields of a pydantic model",
    "http/responses.py: response_model": "the fields of a pydantic model",
    "i18n/__init__.py: text": "the values of a message",
    "pages/render.py: page": "the variables of a template",
    "testing/history/checker.py: report": "the evidence of a violation is JSON",
    "testing/history/export.py: export": "the fields of a history",
    "testing/history/export.py: export_jobs": "the fields of a history",
    "worker/job_log.py: log": "the fields of a log line",
}


def test_a_folder_holds_at_most_15_files() -> None:
    sizes = source.folder_sizes()
    assert {name: count for name, count in sizes.items() if count > MAX_FILES_PER_FOLDER} == {}


def test_a_class_name_exists_once() -> None:
    assert {name: modules for name, modules in source.classes().items() if len(modules) > 1} == {}


def test_no_name_contains_a_banned_word() -> None:
    assert source.banned_names() == set(BANNED_NAMES)


def test_no_text_speaks_of_somebody() -> None:
    assert source.private_style() == set(PRIVATE_STYLE)


def test_public_functions_have_no_untyped_keywords() -> None:
    assert source.untyped_keywords() == set(UNTYPED_KEYWORDS)
