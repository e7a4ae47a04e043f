"""An exception is stored with its whole chain and without secrets."""

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


def caught(work: Callable[[], Any]) -> BaseException:
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def exceptions(error: BaseException) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = describe_error(error, job_type="t").context["exceptions"]
    return found


def size(info: ErrorInfo) -> int:
    return len(json.dumps(info.context, ensure_ascii=False).encode())


def test_an_error_is_named_by_its_class_and_its_message() -> None:
    info = describe_error(caught(lambda: [][1]), job_type="t")
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
        raise RuntimeError("no words today")


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


def test_an_error_that_cannot_be_read_is_kept_nevertheless() -> None:
    assert describe_error(Broken(), job_type="t").message == "its message cannot be read: RuntimeError"


@pytest.mark.parametrize("said", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("place", ["message", "cause", "context", "member", "note", "argument"])
def test_no_secret_is_kept_wherever_it_stands(said: str, place: str) -> None:
    error: BaseException = ValueError("it broke")
    match place:
        case "message":
            error = ValueError(said)
        case "cause":
            error.__cause__ = KeyError(said)
        case "context":
            error.__context__ = RuntimeError(said)
        case "member":
            error = ExceptionGroup("two", [ValueError("a"), ExceptionGroup("inner", [OSError(5, said)])])
        case "note":
            error.add_note(said)
        case "argument":
            error = ValueError("it broke", {"why": said})
    info = describe_error(caught(raising(error)), job_type="t")
    kept = json.dumps([info.message, dict(info.context)])
    assert "hunter2" not in kept
    assert "4111 1111" not in kept
    assert any(mask in kept for mask in ("[redacted]", "[email]", "[number]"))


def test_locals_and_source_lines_are_not_kept() -> None:
    def work(password: str) -> None:
        api_key = password * 2
        raise ValueError(f"it broke after {len(api_key)}")

    kept = json.dumps(describe_error(caught(lambda: work("hunter2")), job_type="t").context)
    assert "hunter2" not in kept
    assert "api_key" not in kept


def test_no_path_of_the_machine_is_kept() -> None:
    error = caught(lambda: json.loads("{"))
    kept = json.dumps(describe_error(error, job_type="t").context)
    for folder in {Path(__file__).parent, Path(json.__file__).parent, Path.cwd(), Path.home()}:
        assert f"{folder}/" not in kept
    [shown] = exceptions(error)
    files = [frame["file"] for frame in shown["frames"]]
    assert files[0] == "/".join([*__name__.split(".")[:-1], Path(__file__).name])
    assert files[-1] == "json/decoder.py"
    assert "json/__init__.py" in files


def test_a_frame_says_file_line_and_function() -> None:
    error = caught(raising(ValueError("x")))
    [shown] = exceptions(error)
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    assert shown["frames"][-1] == {
        "file": "tests/core/test_error_report.py",
        "line": innermost.lineno,
        "function": "raising.<locals>.work",
    }


def test_causes_contexts_and_members_are_linked_to_what_they_explain() -> None:
    def work() -> None:
        try:
            raise KeyError("a")
        except KeyError as error:
            try:
                raise OSError("b") from error
            except OSError:
                raise ExceptionGroup("c", [ValueError("d"), TypeError("e")])  # noqa: B904

    shown = exceptions(caught(work))
    assert [(e["class"], e.get("relation"), e.get("of")) for e in shown] == [
        ("ExceptionGroup", None, None),
        ("OSError", "context", 0),
        ("ValueError", "member", 0),
        ("TypeError", "member", 0),
        ("KeyError", "cause", 1),
    ]


def test_a_context_that_was_suppressed_stays_so() -> None:
    def work() -> None:
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("b") from None

    assert [e["class"] for e in exceptions(caught(work))] == ["ValueError"]


def test_a_circle_of_causes_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert [e["message"] for e in exceptions(first)] == ["a", "b"]


def test_notes_are_kept() -> None:
    error = ValueError("a")
    error.add_note("row 7")
    error.add_note("of page 3")
    assert exceptions(error)[0]["notes"] == ["row 7", "of page 3"]
    error.__notes__ = "not a list"  # type: ignore[assignment]
    assert "notes" not in exceptions(error)[0]


def test_a_deep_recursion_keeps_its_beginning_and_its_end() -> None:
    def fall(depth: int) -> None:
        if depth == 0:
            raise ValueError("the ground")
        fall(depth - 1)

    [shown] = exceptions(caught(lambda: fall(300)))
    assert len(shown["frames"]) == MAX_FRAMES
    assert shown["frames_left_out"] == 303 - MAX_FRAMES
    assert shown["frames"][0]["function"] == "caught"


def test_many_exceptions_are_cut_to_the_first_ones() -> None:
    info = describe_error(ExceptionGroup("all", [ValueError(str(n)) for n in range(500)]), job_type="t")
    assert len(info.context["exceptions"]) == MAX_EXCEPTIONS
    assert info.context["shortened"] is True


def _everything_at_once(character: str) -> BaseException:
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
        caught(lambda link=link: fall(100, link))  # type: ignore[misc]
    return links[0]


@pytest.mark.parametrize("character", ["x ", "ä", "\N{PILE OF POO}", '"', "\n", "\0", "\ud800"])
def test_the_whole_stays_within_its_size(character: str) -> None:
    info = describe_error(_everything_at_once(character), job_type="t")
    assert size(info) <= MAX_ERROR_BYTES
    assert len(info.message) <= MAX_TEXT_LENGTH
    assert info.context["shortened"] is True
    assert len(info.context["exceptions"]) == MAX_EXCEPTIONS


def test_an_error_survives_the_way_out_of_another_process() -> None:
    info = describe_error(caught(lambda: [][1]), job_type="t")
    assert pickle.loads(pickle.dumps(info)) == info
    assert hash(info) == hash(pickle.loads(pickle.dumps(info)))


@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_an_error_says_can_be_stored(message: str, note: str) -> None:
    error = ValueError(message)
    error.add_note(note)
    kept = json.dumps(dict(describe_error(error, job_type="t").context))
    assert "\\u0000" not in kept
    json.loads(kept)
    json.dumps(dict(describe_error(error, job_type="t").context), ensure_ascii=False).encode()


# Fingerprints: modules are made as they would be loaded, so that frames lie where an application's would.


def module(name: str, path: str, source: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names)
    exec(compile(source, path, "exec"), vars(made))
    return made


def printed(work: Callable[[], Any], job_type: str = "mail.send") -> str:
    return fingerprint(job_type, describe_error(caught(work), job_type=job_type))


def called(work: Callable[[], Any]) -> BaseException:
    """The error without the frames of this test: as if a worker had called."""
    error = caught(work)
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_globals["__name__"] == __name__:
        tb = tb.tb_next
    return error.with_traceback(tb)


LIBRARY = "/opt/venv/lib/python3.12/site-packages"


def test_the_place_of_a_failure_is_the_innermost_frame_of_the_application() -> None:
    def send(rows: list[int]) -> None:
        json.loads("{")

    error = caught(lambda: send([]))
    assert describe_error(error, job_type="t").context["where"] == {
        "file": "tests/core/test_error_report.py",
        "line": send.__code__.co_firstlineno + 1,
        "function": f"{send.__qualname__}",
    }


def test_an_application_that_is_installed_like_a_library_is_found_by_being_called_first() -> None:
    app = module("acme.jobs", f"{LIBRARY}/acme/jobs.py", "def send(client): client.get()\n")
    client = module("httpx.client", f"{LIBRARY}/httpx/client.py", "def get(): raise OSError('down')\n")
    info = describe_error(called(lambda: app.send(client)), job_type="t")
    assert (info.context["where"]["file"], info.context["where"]["function"]) == ("acme/jobs.py", "send")


def test_the_engine_and_the_language_are_nobodys_application() -> None:
    engine = module("duly.db.database", f"{LIBRARY}/duly/db/database.py", "def read(): int('x')\n")
    info = describe_error(called(engine.read), job_type="t")
    assert info.context["where"] is None
    assert len(fingerprint("t", info)) == 16


def test_the_engines_own_applications_are_applications() -> None:
    app = module("duly.apps.analyze.jobs", f"{LIBRARY}/duly/apps/analyze/jobs.py", "def scan(): int('x')\n")
    assert (
        describe_error(called(app.scan), job_type="t").context["where"]["file"] == "duly/apps/analyze/jobs.py"
    )


def test_equal_failures_have_one_fingerprint_whatever_they_say_and_wherever_the_line_moved() -> None:
    before = "def send(n):\n    raise ValueError(f'row {n}')\n"
    after = f"# a comment\n\n{before}"
    old = module("acme.jobs", "/srv/a/acme/jobs.py", before)
    new = module("acme.jobs", "/srv/b/acme/jobs.py", after)
    assert printed(lambda: old.send(1)) == printed(lambda: old.send(2)) == printed(lambda: new.send(3))


def test_failures_of_different_kinds_have_different_fingerprints() -> None:
    source = "def send(error):\n    raise error\ndef read(error):\n    raise error\n"
    mail = module("acme.mail", "/srv/acme/mail.py", source)
    page = module("acme.page", "/srv/acme/page.py", source)
    kinds = [
        printed(lambda: mail.send(ValueError("x"))),
        printed(lambda: mail.send(ValueError("x")), job_type="mail.read"),
        printed(lambda: mail.send(TypeError("x"))),
        printed(lambda: mail.send(CardExpired("x"))),
        printed(lambda: mail.read(ValueError("x"))),
        printed(lambda: page.send(ValueError("x"))),
    ]
    assert len(set(kinds)) == len(kinds)
    assert all(len(kind) == 16 and int(kind, 16) >= 0 for kind in kinds)


def test_an_error_that_was_never_raised_has_a_fingerprint_too() -> None:
    assert fingerprint("t", ErrorInfo("lease_lost", "a")) == fingerprint("t", ErrorInfo("lease_lost", "b"))
    assert fingerprint("t", ErrorInfo("lease_lost", "a")) != fingerprint("t", ErrorInfo("timeout", "a"))
