"""Logs of a run: shared by processes, whole lines only; a request without an answer is unknown."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from duly.testing.history import (
    AuditObservation,
    Cancellation,
    Effect,
    FeedRead,
    History,
    IsolationProbe,
    JobObservation,
    LeaseObservation,
    RecordedSubmission,
    Recorder,
    StreamRead,
    by_field,
    load,
)
from duly.testing.history.recorder import Record

A, B = uuid.uuid4(), uuid.uuid4()
RECORDS: list[Record] = [
    RecordedSubmission("c", A, "key", "x.y", "ok", B),
    Cancellation("c", A, B, "ok", "canceled"),
    StreamRead("r", A, B, ((1, "job.queued"), (2, "job.started")), to_the_end=False),
    FeedRead("r", A, ((B, 1), (B, 2))),
    IsolationProbe(A, "GET", "404", "404", (A, B)),
    Effect("outside", A, B, 1, "key\n\r\u2028"),
    JobObservation("o", A, B, "queued", 0, 1, 33.3, 1, ""),
    LeaseObservation(A, 1.5, lost=True),
    AuditObservation("entry", "digest"),
]


def test_written_records_are_read(tmp_path: Path) -> None:
    log = Recorder(tmp_path / "log")
    for record in RECORDS:
        log.write(record)
    log.close()
    read = load([tmp_path / "log"])
    assert read == RECORDS
    history = History(**by_field(read))
    assert [*history.feeds, *history.audit_observations] == [RECORDS[3], RECORDS[8]]


def test_a_request_is_unknown_until_its_answer_is_written(tmp_path: Path) -> None:
    log = Recorder(tmp_path / "log")
    answered = log.begin(RecordedSubmission("c", A, "k1", "x.y", "ok"))
    lost = log.begin(Cancellation("c", A, B, "ok"))
    log.write(replace(answered, answer="ok", job_id=B))
    assert load([tmp_path / "log"]) == [replace(answered, answer="ok", job_id=B), lost]
    assert (answered.answer, lost.answer) == ("unknown", "unknown")


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_line_loses_only_its_own_record(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log"
    log = Recorder(path)
    for record in RECORDS[:2]:
        log.write(record)
    path.write_bytes(path.read_bytes()[:-cut])
    assert load([path]) == RECORDS[:1]
    log.write(RECORDS[2])
    log.write(RECORDS[3])
    torn = [RECORDS[1]] if cut == 1 else []
    assert load([path]) == [RECORDS[0], *torn, *RECORDS[2:4]], "a line that lacks only its end is whole again"


_WRITER = """
import sys, uuid
from itertools import count
from duly.testing.history import Effect, Recorder
log, me = Recorder(sys.argv[1]), uuid.UUID(sys.argv[2])
for n in count(1):
    log.write(Effect("outside", me, me, n, "x" * (n % 5000)))
    if n == 50:
        print("ready", flush=True)
"""


def test_processes_that_share_a_log_and_are_killed_lose_nothing(tmp_path: Path) -> None:
    path, names = tmp_path / "log", [uuid.uuid4() for _ in range(3)]
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, path, str(name)], stdout=subprocess.PIPE)
        for name in names
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    effects = by_field(load([path]))["effects"]
    for name in names:
        numbers = [effect.attempt for effect in effects if effect.org_id == name]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= 50
