"""The service, a worker and job types that wait for the test; and a visitor that records errors."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, urlsplit

from fastapi import FastAPI
from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, expect

from duly import Context, Duly, Fail, RetryPolicy
from duly.apps.documents.options import DocumentOptions
from duly.console import install
from duly.core.job import SYSTEM_ORG
from duly.http.application import create_app
from duly.http.authentication.jwt import Issuer, OidcClient
from duly.http.options import HttpOptions
from duly.testing import FreshDatabase
from tests.browser.axe import findings
from tests.http.conftest import key_of, served
from tests.http.issuer import CLIENT, LocalIssuer, issuing
from tests.http.sample_org import declare_reports

PREFIX = "/tools/duly"
SHOTS = os.environ.get("DULY_SCREENSHOTS")
NARROW = {"width": 360, "height": 740}
EXACT = {"year": 1999, "order_number": 20260418, "ratio": 0.12345, "whole": 1.0, "huge": 2**64 + 1}
"""Numbers that a page must show unchanged."""
WIDE = {"width": 1180, "height": 800}
WIDE_FONT = "* { font-family: monospace !important; letter-spacing: 0.25em !important; }"
"""Wider than any font that a system has for pages."""
# A style element would need the permission of the content security policy.
_ADOPT = """rules => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(rules);
    document.adoptedStyleSheets = rules ? [sheet] : [];
}"""
_CULPRITS = """() => [...document.querySelectorAll("body *")]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 0.5)
    .map(one => `${one.tagName}.${one.className}: ${(one.textContent ?? "").trim().slice(0, 30)}`)
    .slice(-8)"""


@dataclass
class Stage:
    """Where everything is, and what holds the jobs back."""

    app: Duly
    org: uuid.UUID
    key: str
    url: str
    platform_key: str = ""
    """The key of a platform operator."""
    issuer: LocalIssuer = field(default_factory=LocalIssuer)
    """Where people log in."""
    steps: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    """Set by a test to let the job go on at that step."""

    async def jobs(self) -> list[str]:
        """The job types of all jobs there are."""
        return [job.job_type for job in (await self.app.jobs.list(self.org, limit=500)).jobs]


@asynccontextmanager
async def staged(fresh: FreshDatabase, home: Path) -> AsyncIterator[Stage]:
    """Everything at work."""
    pooled = {"database_direct_url": fresh.direct_url} if fresh.url != fresh.direct_url else {}
    app = Duly(database_url=fresh.url, blobs_url=str(home), maintenance=False, **pooled)
    app.include_analyze()
    app.include_documents()
    org = uuid.uuid4()
    await app.create_org(org, "Acme")
    stage = Stage(app, org, await key_of(app, org), "")
    stage.platform_key = await key_of(app, SYSTEM_ORG, "platform")
    _declare(app, stage)
    # Pages offer it; the worker knows of no such service.
    elsewhere = DocumentOptions(unstructured_url="http://127.0.0.1:9")
    async with issuing() as stage.issuer:
        trusted = Issuer(stage.issuer.url, "duly", platform_claim="ops")
        sign_in = OidcClient(CLIENT, label="Acme")
        api = create_app(app, HttpOptions(documents=elsewhere, issuers=(trusted,), sign_in=sign_in))
        install(api)
        outer = FastAPI()
        outer.mount(PREFIX, api)
        outer.mount("/", api)
        async with app.worker(), served(outer) as stage.url:
            yield stage
    await app.close()


def _declare(app: Duly, stage: Stage) -> None:
    declare_reports(app)
    once = RetryPolicy(max_attempts=1)

    @app.job("demo.steps")
    async def steps(ctx: Context, name: str, parts: list[str]) -> dict[str, object]:
        """One part after the other; before each it waits for the test."""
        ctx.progress(5, "looking around")
        async for chunk in ctx.chunks(parts):
            await _either(stage.steps[f"{name}/{chunk.key}"], ctx)
            async with chunk:
                chunk.result = {"part": chunk.item, "letters": len(chunk.item), "html": "<b>no</b>"}
        await ctx.artifact("list.txt", "\n".join(parts).encode(), content_type="text/plain")
        return {
            "parts": await ctx.results(),
            "by": name,
            "none": None,
            "ok": True,
            "deep": {"a": [1, 2.5]},
            **EXACT,
        }

    @app.job("demo.fails", retry=once)
    async def fails(passing: bool) -> None:
        if passing:
            raise ConnectionError("the other side hung up")
        raise Fail("this customer has no address", code="customer.incomplete")

    @app.job("demo.flaky", retry=RetryPolicy(delays=(timedelta(milliseconds=1), timedelta(hours=1))))
    async def flaky(ctx: Context, name: str) -> None:
        """Always fails; the second time, when the test says so."""
        ctx.log.warning("row %d <b>looks</b> odd", ctx.attempt)
        if ctx.attempt == 2:
            await _either(stage.steps[name], ctx)
        raise ValueError(f"row {ctx.attempt} is no number")

    @app.job("demo.later", schedulable=True)
    async def later() -> None: ...


async def _either(go_on: asyncio.Event, ctx: Context) -> None:
    """Wait for the test, or for a cancellation."""
    while not go_on.is_set():
        ctx.check_canceled()
        try:
            async with asyncio.timeout(0.05):
                await go_on.wait()
        except TimeoutError:
            continue


@dataclass
class Visitor:
    """A browser window, and what must not happen in it."""

    stage: Stage
    page: Page
    trouble: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """Words of console messages that the test provokes."""

    def watch(self, context: BrowserContext) -> None:
        """Take note of errors, violations and strange requests."""
        context.on("console", self._console)
        context.on("weberror", lambda error: self.trouble.append(f"error: {error.error}"))
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(word in message.text for word in self.expected):
            self.trouble.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        known = [urlsplit(url).netloc for url in (self.stage.url, self.stage.issuer.url)]
        if parts.scheme not in ("data", "blob") and parts.netloc not in known:
            self.trouble.append(f"request to {request.url}")

    async def open(self, path: str) -> None:
        """Go to one of our pages."""
        await self.page.goto(self.stage.url + path)

    async def log_in(self, prefix: str = "", key: str | None = None) -> None:
        """By the link that has the key behind its #, and a click."""
        await self.open(f"{prefix}/login#key={key or self.stage.key}")
        await self.page.locator("#log-in").click()
        await self.page.wait_for_url("**/submit")

    async def operate(self, key: str | None = None, path: str = "/console") -> None:
        """Log in to the console, and wait until its page is live."""
        await self.open(f"/login?next={quote(path, safe='')}#key={key or self.stage.key}")
        await self.page.locator("#log-in").click()
        await self.page.wait_for_url(f"**{path}")
        await self.live()

    async def live(self) -> None:
        """Wait until the page would hear of changes."""
        await expect(self.page.locator("#pulse[data-state=live]")).to_be_attached()

    async def ask(self, job_type: str, payload: str) -> str:
        """Ask for any job by the form; its id."""
        await self.open("/submit")
        await self.page.locator("#other > summary").click()
        await self.page.get_by_label("Job type").fill(job_type)
        await self.page.get_by_label("Payload (JSON)").fill(payload)
        await self.page.get_by_role("button", name="Submit job").click()
        await self.page.wait_for_url("**/jobs/*")
        return self.page.url.rpartition("/")[2]

    async def check_accessible(self, name: str) -> None:
        """Raise if the current page is not accessible."""
        assert (found := await findings(self.page)) == [], f"{name}: " + "\n".join(found)

    async def check_fits(self, name: str) -> None:
        """Raise if the page scrolls sideways at its present size, in its own font or in a much wider one."""
        for font, rules in (("its own font", ""), ("a wide font", WIDE_FONT)):
            await self.page.evaluate(_ADOPT, rules)
            pixels = await self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            culprits = await self.page.evaluate(_CULPRITS) if pixels > 0 else []
            await self.page.evaluate(_ADOPT, "")
            assert pixels <= 0, f"{name} is {pixels} pixels too wide in {font}: {culprits}"

    async def picture(self, name: str) -> None:
        """Take a picture of the page as it is, if screenshots are requested."""
        if SHOTS:
            await self.page.screenshot(path=Path(SHOTS, f"{name}.png"), full_page=True)

    async def shoot(self, name: str) -> None:
        """Take pictures of the page, light, dark and narrow, if screenshots are requested; check it.

        It must be accessible, and must not scroll sideways when it is narrow. The walk checks dark pages.
        """
        page = self.page
        for dress, scheme, size in (
            ("light", "light", WIDE), ("dark", "dark", WIDE), ("narrow", "light", NARROW),
        ):  # fmt: skip
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size(size)
            await self.picture(f"{name}-{dress}")
            if dress == "light":
                await self.check_accessible(f"{name}, {dress}")
        try:
            await self.check_fits(name)
        finally:
            await page.emulate_media(color_scheme="light")
            await page.set_viewport_size(WIDE)
