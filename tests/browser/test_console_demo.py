"""The demo on a terminal: a frozen worker is taken over and its write refused; nothing outlives the demo."""

from __future__ import annotations

import os
import pty
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from demo_app.customers import ORGS
from playwright.async_api import expect

from duly import Duly
from duly.apps.documents.schema import SCHEMA
from duly.testing import DatabaseCluster
from duly.worker.job_log import REFUSED_LINE_SEQ
from tests.browser.stage import Stage, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")
DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@dataclass
class Town(Stage):
    """The demo, and its workers."""

    demo: subprocess.Popen[bytes] | None = None
    pids: list[int] = field(default_factory=list)


@contextmanager
def on_a_terminal(environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[str]]]:
    """The demo, and the lines that it says."""
    ours, its = pty.openpty()
    said: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        with os.fdopen(ours, "rb") as screen, suppress(OSError):  # the end of a terminal is an error
            for line in screen:
                said.put(line.decode().strip())
                print(line.decode().strip())  # shown if a test fails

    with subprocess.Popen([sys.executable, DEMO], env=environment, stdout=its, stderr=its) as demo:
        os.close(its)
        # Read to the end: a process that writes to an unread terminal blocks.
        listening = threading.Thread(target=listen)
        listening.start()
        try:
            yield demo, iter(said.get, None)
        finally:
            demo.kill()
            listening.join()


def told(lines: Iterator[str], word: str) -> str:
    """What it says behind a word."""
    return next(line.removeprefix(word).strip() for line in lines if line.startswith(f"{word} "))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(cluster: DatabaseCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    home = str(tmp_path_factory.mktemp("town"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
    with cluster.fresh(schemas=[SCHEMA]) as fresh:
        named = {"DULY_DATABASE_URL": fresh.direct_url, "DULY_HOME": home, "DULY_BLOBS_URL": home}
        with on_a_terminal({**kept, **named}) as (demo, lines):
            url = told(lines, "service")
            ours, theirs = (told(lines, word).partition("#key=")[2] for word in ("Console", "Customer"))
            pids = [int(pid) for pid in re.findall(r"worker-\d (\d+)", told(lines, "Workers"))]
            async with Duly(database_url=fresh.direct_url, blobs_url=home) as app:
                town = Town(app, ORGS[0].org_id, theirs, url, demo=demo, pids=pids)
                town.platform_key, town.issuer = ours, SimpleNamespace(url=url)
                yield town


async def test_a_frozen_worker_is_replaced_and_its_late_write_rejected(visitor: Visitor, stage: Town) -> None:
    page = visitor.page
    await visitor.operate(stage.platform_key, "/console/demo")
    await page.get_by_role("button", name="Freeze a worker").click()
    await page.wait_for_url("**/console/jobs/*?org=*")
    await expect(
        page.get_by_role("status").filter(has_text="was frozen while it held this job")
    ).to_be_visible()
    for sign in ("lease_lost", "taken_over", "refused"):
        await expect(page.locator(f"#waterfall .f-sign.f-{sign}").first).to_be_attached()
    await visitor.shoot("console-demo-job")
    address = urlsplit(page.url)
    org, job = parse_qs(address.query)["org"][0], address.path.rpartition("/")[2]
    events = [(one.event_type, one.attempt) for one in (await stage.app.jobs.show(org, job)).events]
    lost = events.index(("job.lease_lost", 1))
    assert events[lost + 1] == ("job.started", 2)
    assert {attempt for _, attempt in events[lost + 1 :]} == {2}
    assert (await stage.app.jobs.logs(org, job, attempt=1)).lines[-1].line_seq == REFUSED_LINE_SEQ

    await page.get_by_role("link", name="Demo", exact=True).click()
    times = r"after \S+ s\s+after \S+ s by worker-\d\s+after \S+ s\s+after \S+ s"
    await expect(page.locator("tr[id^=incident]")).to_contain_text(re.compile(times))
    strip = page.get_by_label("Promises checked so far")
    await expect(strip.locator("[data-verdict=held]")).to_have_count(5)
    assert await page.locator("[data-verdict=broken]").count() == 0
    await visitor.shoot("console-demo")


async def test_a_customer_sees_the_promises_and_cannot_kill(visitor: Visitor, stage: Town) -> None:
    await visitor.operate(stage.key)
    await expect(visitor.page.get_by_label("Promises checked so far")).to_be_visible()
    await expect(visitor.page.get_by_role("link", name="Kill a worker")).to_have_count(0)
    visitor.expected = ("403",)
    answer = await visitor.page.goto(stage.url + "/console/demo")
    assert answer is not None
    assert answer.status == 403


async def test_nothing_outlives_the_demo(stage: Town) -> None:
    assert len(stage.pids) >= 2
    assert stage.demo is not None
    os.kill(stage.pids[0], signal.SIGSTOP)  # a frozen one too
    stage.demo.kill()
    stage.demo.wait()
    while any(map(_lives, stage.pids)):
        threading.Event().wait(0.05)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
