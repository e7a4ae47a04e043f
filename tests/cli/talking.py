"""An application whose handlers talk, on the loop, on a thread and in a process of their own."""

from __future__ import annotations

import logging

from duly import Context, Duly, RetryPolicy, SyncContext

app = Duly()
shop = logging.getLogger("shop")


@app.job("talk.loop")
async def on_the_loop(ctx: Context, text: str) -> str:
    _talk(ctx, text)
    return text


@app.job("talk.thread")
def on_a_thread(ctx: SyncContext, text: str) -> str:
    _talk(ctx, text)
    return text


@app.job("talk.process", isolation="process")
def in_a_process(ctx: SyncContext, text: str) -> str:
    _talk(ctx, text)
    return text


@app.job("talk.badly", retry=RetryPolicy(max_attempts=1))
async def badly(ctx: Context, text: str) -> None:
    try:
        _talk(ctx, text)
        int(f"password={text}")
    except ValueError:
        shop.exception("no number")
        ctx.log.exception("no number")
        raise


def _talk(ctx: Context | SyncContext, text: str) -> None:
    shop.debug("looking", extra={"text": text, "payload": {"text": text}})
    shop.info("at work with secret=%s", text)
    ctx.log.info("kept, api_key: %s", text, extra={"text": text, "processed": 1})
