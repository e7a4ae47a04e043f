"""A worker that extracts, imports and exports documents, in a process of its own, to be killed."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from duly import Duly
from duly.apps.documents.imports.options import ImportOptions, ProviderEndpoint
from duly.apps.documents.imports.secrets import SecretStore

LEASE = timedelta(seconds=0.6)


def make_app(url: str, direct_url: str, blobs: str, secrets: str = "", dropbox: str = "") -> Duly:
    """The same application, also for the tests' own process."""
    direct = direct_url if direct_url != url else None
    app = Duly(database_url=url, database_direct_url=direct, blobs_url=blobs, maintenance=False)
    imports = ImportOptions()
    if dropbox:
        place = ProviderEndpoint(dropbox, f"{dropbox}/oauth2/token", dropbox)
        imports = ImportOptions(SecretStore(secrets, {}), place)
    app.include_documents(imports=imports)
    return app


async def work(app: Duly) -> None:
    """Work until the input is closed."""
    async with app, app.worker(lease=LEASE, heartbeat=LEASE / 4):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(work(make_app(*sys.argv[1:])))
