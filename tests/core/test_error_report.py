"""Error reports contain the whole exception chain, without secrets, locals or absolute paths."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.error_report import MAX_ERROR_BYTES, MAX_EXCEPTIONS, MAX_FRAMES, describe_error, fingerprint
from duly.core.errors import UnknownJob
from duly.core.outcome import ErrorInfo
from duly.core.redaction import MAX_TEXT_LENGTH

SECRETS = {
    "a password": "login failed: password=hunter2",
    "a token": "403 for Bearer hunter2.abcdef0123",
    "a connection string": 'cannot reach "postgresql://app:hunter2@db.example.com/app"',
    "an e-mail address": "no mailbox for hunter2@example.com",
    "a card": "declined: 4111 1111 1111 1111",
    "a refused input": "1 validation error for M\npin\n  bad [type=x, input_value='hunter2', input_type=str]",
}


def catch_error(work: Callable[[], Any]) -> BaseException:
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def reported_exceptions(error: BaseException) -> list[dict[str, Any]]:
    reported: list[dict[str, Any]] = describe_error(error, job_type="t").context["exceptions"]
    return reported


def size(info: ErrorInfo) -> int:
    return len(json.dumps(info.context, ensure_ascii=False).encode())


def test_a_report_has_the_class_and_the_message_of_the_error() -> None:
    info = describe_error(catch_error(lambda: [][1]), job_type="t")
    assert (info.code, info.error_class, info.message) == (
        "index_error",
        "IndexError",
        "list index out of range",
    )
    assert info.context["job_type"] == "t"
    assert info.context["shortened"] is False


class HTTPStatusError(Exception):
    pass


class CardExpired(Exception):
    code = "billing.card_expired"


class Numbered(Exception):
    code = 503


class Broken(Exception):
    @property
    def code(self) -> str:
        raise RuntimeError("no code today")

    def __str__(self) -> str:
        raise RuntimeError("no message today")


@pytest.mark.parametrize(
    ("error", "code", "error_class"),
    [
        (HTTPStatusError(), "http_status_error", f"{__name__}.HTTPStatusError"),
        (CardExpired(), "billing.card_expired", f"{__name__}.CardExpired"),
        (Numbered(), "numbered", f"{__name__}.Numbered"),
        (UnknownJob("x"), "job.unknown", "duly.core.errors.UnknownJob"),
        (Broken(), "broken", f"{__name__}.Broken"),
    ],
)
def test_an_error_with_a_stable_code_keeps_it(error: Exception, code: str, error_class: str) -> None:
    info = describe_error(error, job_type="t")
    assert (info.code, info.error_class) == (code, error_class)


def test_an_error_whose_message_raises_is_still_reported() -> None:
    assert describe_error(Broken(), job_type="t").message == "its message cannot be read: RuntimeError"


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("location", ["message", "cause", "context", "member", "note", "argument"])
def test_secrets_are_redacted_in_every_part_of_an_exception(text: str, location: str) -> None:
    error: BaseException = ValueError("it broke")
    match location:
        case "message":
            error = ValueError(text)
        case "cause":
            error.__cause__ = KeyError(text)
        case "context":
            error.__context__ = RuntimeError(text)
        case "member":
            error = ExceptionGroup("two", [ValueError("a"), ExceptionGroup("inner", [OSError(5, text)])])
        case "note":
            error.add_note(text)
        case "argument":
            error = ValueError("it broke", {"why": text})
    info = describe_error(catch_error(raising(error)), job_type="t")
    report = json.dumps([info.message, dict(info.context)])
    assert "hunter2" not in report
    assert "4111 1111" not in report
    assert any(mask in report for mask in ("[redacted]", "[email]", "[number]"))


def test_locals_and_source_lines_are_not_reported() -> None:
    def work(password: str) -> None:
        api_key = password * 2
        raise ValueError(f"it broke after {len(api_key)}")

    report = json.dumps(describe_error(catch_error(lambda: work("hunter2")), job_type="t").context)
    assert "hunter2" not in report
    assert "api_key" not in report


def test_no_absolute_path_is_reported() -> None:
    error = catch_error(lambda: json.loads("{"))
    report = json.dumps(describe_error(error, job_type="t").context)
    for folder in {Path(__file__).parent, Path(json.__file__).parent, Path.cwd(), Path.home()}:
        assert f"{folder}/" not in report
    [reported] = reported_exceptions(error)
    files = [frame["file"] for frame in reported["frames"]]
    assert files[0] == "/".join([*__name__.split(".")[:-1], Path(__file__).name])
    assert files[-1] == "json/decoder.py"
    assert "json/__init__.py" in files


def test_a_frame_has_file_line_and_function() -> None:
    error = catch_error(raising(ValueError("x")))
    [reported] = reported_exceptions(error)
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    assert reported["frames"][-1] == {
        "file": "tests/core/test_error_report.py",
        "line": innermost.lineno,
        "function": "raising.<locals>.work",
    }


def test_causes_contexts_and_members_are_linked_to_their_exception() -> None:
    def work() -> None:
        try:
            raise KeyError("a")
        except KeyError as error:
            try:
                raise OSError("b") from error
            except OSError:
                raise ExceptionGroup("c", [ValueError("d"), TypeError("e")])  # noqa: B904

    reported = reported_exceptions(catch_error(work))
    assert [(e["class"], e.get("relation"), e.get("of")) for e in reported] == [
        ("ExceptionGroup", None, None),
        ("OSError", "context", 0),
        ("ValueError", "member", 0),
        ("TypeError", "member", 0),
        ("KeyError", "cause", 1),
    ]


def test_a_suppressed_context_is_not_reported() -> None:
    def work() -> None:
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("b") from None

    assert [e["class"] for e in reported_exceptions(catch_error(work))] == ["ValueError"]


def test_each_exception_of_a_cycle_of_causes_is_reported_once() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert [e["message"] for e in reported_exceptions(first)] == ["a", "b"]


def test_notes_are_reported() -> None:
    error = ValueError("a")
    error.add_note("row 7")
    error.add_note("of page 3")
    assert reported_exceptions(error)[0]["notes"] == ["row 7", "of page 3"]
    error.__notes__ = "not a list"  # type: ignore[assignment]
    assert "notes" not in reported_exceptions(error)[0]


def test_a_deep_recursion_keeps_its_outermost_and_innermost_frames() -> None:
    def fall(depth: int) -> None:
        if depth == 0:
            raise ValueError("the innermost frame")
        fall(depth - 1)

    [reported] = reported_exceptions(catch_error(lambda: fall(300)))
    assert len(reported["frames"]) == MAX_FRAMES
    assert reported["frames_left_out"] == 303 - MAX_FRAMES
    assert reported["frames"][0]["function"] == "catch_error"


def test_only_the_first_of_many_exceptions_are_reported() -> None:
    info = describe_error(ExceptionGroup("all", [ValueError(str(n)) for n in range(500)]), job_type="t")
    assert len(info.context["exceptions"]) == MAX_EXCEPTIONS
    assert info.context["shortened"] is True


def _huge_error(character: str) -> BaseException:
    def fall(depth: int, error: BaseException) -> None:
        if depth == 0:
            raise error
        fall(depth - 1, error)

    name = character if character.isprintable() else "ä"
    links = [type(name * 500, (ValueError,), {})(character * 5000) for _ in range(12)]
    for link, cause in pairwise(links):
        link.__cause__ = cause
    for link in links:
        for _ in range(20):
            link.add_note(character * 5000)
        catch_error(lambda link=link: fall(100, link))  # type: ignore[misc]
    return links[0]


@pytest.mark.parametrize("character", ["x ", "ä", "\N{PILE OF POO}", '"', "\n", "\0", "\ud800"])
def test_a_report_stays_within_its_size_limit(character: str) -> None:
    info = describe_error(_huge_error(character), job_type="t")
    assert size(info) <= MAX_ERROR_BYTES
    assert len(info.message) <= MAX_TEXT_LENGTH
    assert info.context["shortened"] is True
    assert len(info.context["exceptions"]) == MAX_EXCEPTIONS


def test_an_error_report_can_be_pickled() -> None:
    info = describe_error(catch_error(lambda: [][1]), job_type="t")
    assert pickle.loads(pickle.dumps(info)) == info
    assert hash(info) == hash(pickle.loads(pickle.dumps(info)))


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_error_message_can_be_stored(message: str, note: str) -> None:
    error = ValueError(message)
    error.add_note(note)
    report = json.dumps(dict(describe_error(error, job_type="t").context))
    assert "\\u0000" not in report
    json.loads(report)
    json.dumps(dict(describe_error(error, job_type="t").context), ensure_ascii=False).encode()


# Fingerprints: modules are compiled with the paths of an installed application, so that frames have them too.


def module(name: str, path: str, source: str, **names: Any) -> ModuleType:
    created = ModuleType(name)
    vars(created).update(names)
    exec(compile(source, path, "exec"), vars(created))
    return created


def fingerprint_of(work: Callable[[], Any], job_type: str = "mail.send") -> str:
    return fingerprint(job_type, describe_error(catch_error(work), job_type=job_type))


def called_by_a_worker(work: Callable[[], Any]) -> BaseException:
    """Return the error without the frames of this test, as if a worker had called `work`."""
    error = catch_error(work)
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_globals["__name__"] == __name__:
        tb = tb.tb_next
    return error.with_traceback(tb)


LIBRARY = "/opt/venv/lib/python3.12/site-packages"


def test_a_failure_is_located_at_the_innermost_application_frame() -> None:
    def send(rows: list[int]) -> None:
        json.loads("{")

    error = catch_error(lambda: send([]))
    assert describe_error(error, job_type="t").context["where"] == {
        "file": "tests/core/test_error_report.py",
        "line": send.__code__.co_firstlineno + 1,
        "function": f"{send.__qualname__}",
    }


def test_an_application_in_site_packages_is_recognised_as_the_outermost_caller() -> None:
    app = module("acme.jobs", f"{LIBRARY}/acme/jobs.py", "def send(client): client.get()\n")
    client = module("httpx.client", f"{LIBRARY}/httpx/client.py", "def get(): raise OSError('down')\n")
    info = describe_error(called_by_a_worker(lambda: app.send(client)), job_type="t")
    assert (info.context["where"]["file"], info.context["where"]["function"]) == ("acme/jobs.py", "send")


def test_frames_of_the_engine_and_the_standard_library_are_not_application_frames() -> None:
    engine = module("duly.db.database", f"{LIBRARY}/duly/db/database.py", "def read(): int('x')\n")
    info = describe_error(called_by_a_worker(engine.read), job_type="t")
    assert info.context["where"] is None
    assert len(fingerprint("t", info)) == 16


def test_frames_of_bundled_applications_are_application_frames() -> None:
    app = module("duly.apps.analyze.jobs", f"{LIBRARY}/duly/apps/analyze/jobs.py", "def scan(): int('x')\n")
    assert (
        describe_error(called_by_a_worker(app.scan), job_type="t").context["where"]["file"]
        == "duly/apps/analyze/jobs.py"
    )


def test_a_fingerprint_ignores_messages_and_line_numbers() -> None:
    before = "def send(n):\n    raise ValueError(f'row {n}')\n"
    after = f"# a comment\n\n{before}"
    old = module("acme.jobs", "/srv/a/acme/jobs.py", before)
    new = module("acme.jobs", "/srv/b/acme/jobs.py", after)
    assert (
        fingerprint_of(lambda: old.send(1))
        == fingerprint_of(lambda: old.send(2))
        == fingerprint_of(lambda: new.send(3))
    )


def test_failures_of_different_kinds_have_different_fingerprints() -> None:
    source = "def send(error):\n    raise error\ndef read(error):\n    raise error\n"
    mail = module("acme.mail", "/srv/acme/mail.py", source)
    page = module("acme.page", "/srv/acme/page.py", source)
    kinds = [
        fingerprint_of(lambda: mail.send(ValueError("x"))),
        fingerprint_of(lambda: mail.send(ValueError("x")), job_type="mail.read"),
        fingerprint_of(lambda: mail.send(TypeError("x"))),
        fingerprint_of(lambda: mail.send(CardExpired("x"))),
        fingerprint_of(lambda: mail.read(ValueError("x"))),
        fingerprint_of(lambda: page.send(ValueError("x"))),
    ]
    assert len(set(kinds)) == len(kinds)
    assert all(len(kind) == 16 and int(kind, 16) >= 0 for kind in kinds)


def test_an_error_without_a_traceback_has_a_fingerprint() -> None:
    assert fingerprint("t", ErrorInfo("lease_lost", "a")) == fingerprint("t", ErrorInfo("lease_lost", "b"))
    assert fingerprint("t", ErrorInfo("lease_lost", "a")) != fingerprint("t", ErrorInfo("timeout", "a"))
