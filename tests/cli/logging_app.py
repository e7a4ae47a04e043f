"""An application whose handlers log: on the event loop, on a thread and in an isolated process."""

from __future__ import annotations

import logging

from duly import Context, Duly, RetryPolicy, SyncContext

app = Duly()
shop = logging.getLogger("shop")


@app.job("logging.loop")
async def on_the_event_loop(ctx: Context, text: str) -> str:
    _log(ctx, text)
    return text


@app.job("logging.thread")
def on_a_thread(ctx: SyncContext, text: str) -> str:
    _log(ctx, text)
    return text


@app.job("logging.process", isolation="process")
def in_a_process(ctx: SyncContext, text: str) -> str:
    _log(ctx, text)
    return text


@app.job("logging.failing", retry=RetryPolicy(max_attempts=1))
async def failing(ctx: Context, text: str) -> None:
    try:
        _log(ctx, text)
        int(f"password={text}")
    except ValueError:
        shop.exception("no number")
        ctx.log.exception("no number")
        raise


def _log(ctx: Context | SyncContext, text: str) -> None:
    shop.debug("started", extra={"text": text, "payload": {"text": text}})
    shop.info("at work with secret=%s", text)
    ctx.log.info("stored, api_key: %s", text, extra={"text": text, "processed": 1})
