"""`duly up`: database, service and worker in one process, with an org and a key to begin with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from uuid import UUID

from duly.cli.application import find
from duly.cli.options import AppName, AsJson, acting
from duly.cli.serve import PORT, Host, Port, listening, told_to_stop
from duly.cli.show import print_json
from duly.cli.verbosity import HowMuch, LogLevel, write_logs
from duly.model.access import SCOPES_OF, Role
from duly.wiring import Duly

_ORG = UUID("d0000000-0000-4000-8000-000000000001")
_KEY_LASTS = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Running:
    """What runs, and how to come in."""

    url: str
    org_id: UUID
    key: str = field(repr=False)

    @property
    def login(self) -> str:
        """A link that logs in; the key is behind the #, which browsers send to nobody."""
        return f"{self.url}/login#key={self.key}"


def up(
    app: AppName = None,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    log_level: HowMuch = None,
    as_json: AsJson = False,
) -> None:
    """Run everything in one process, to try it: database, service and worker. Without --app, the analysis."""
    found = find(app)
    write_logs(found.settings, log_level, as_json=as_json, otherwise=LogLevel.WARNING)
    asyncio.run(_until_told(found, host, port, as_json=as_json))


async def _until_told(app: Duly, host: str, port: int, *, as_json: bool) -> None:
    stop = told_to_stop()
    async with running(app, host, port) as here:
        _say(here, as_json=as_json)
        await stop.wait()


def _say(here: Running, *, as_json: bool) -> None:
    if as_json:
        told = {"event": "ready", "url": here.url, "login": here.login}
        print_json({**told, "org_id": here.org_id, "key": here.key})
        return
    print(f"open     {here.login}")
    print(f"service  {here.url}   (the document: {here.url}/openapi.json)")
    print(f"key      {here.key}   (of org {here.org_id}, for {_KEY_LASTS.total_seconds() / 3600:g} hours)")
    print("Ctrl-C ends it; what was done is kept.", flush=True)


@asynccontextmanager
async def running(app: Duly, host: str = "127.0.0.1", port: int = PORT) -> AsyncIterator[Running]:
    """The application with everything it needs, until the end of the block."""
    app.include_analyze()
    if find_spec("xberg"):  # with duly[documents]
        app.include_documents()
    app.migrate()
    async with app:
        await app.create_org(_ORG, "Demo", actor=acting(None), reason="duly up")
        made = await app.keys.create(
            _ORG, "duly up", SCOPES_OF[Role.ADMIN], expires_at=datetime.now(UTC) + _KEY_LASTS,
            actor=acting(None), reason="duly up",
        )  # fmt: skip
        async with app.worker() as worker, listening(app, host, port) as url:
            await worker.listening.wait()
            yield Running(url, _ORG, made.text)
