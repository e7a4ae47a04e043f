"""Invoices and payments: fast jobs, exactly-once bookings, and a flaky bank."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Literal

from duly import Context, Duly, Fail, Job, RetryPolicy

SOON = RetryPolicy(max_attempts=4, base=timedelta(seconds=1), cap=timedelta(seconds=4))
TABLES = """
create schema if not exists shop;
create table if not exists shop.bookings (
    org_id uuid not null, job_id uuid not null, attempt integer not null,
    invoice text not null, cents bigint not null);
create index if not exists bookings_of_job on shop.bookings (job_id);
grant usage on schema shop to duly_tenant;
grant insert on shop.bookings to duly_tenant;
"""
_BOOK = "insert into shop.bookings (org_id, job_id, attempt, invoice, cents) values (%s, %s, %s, %s, %s)"


def declare(app: Duly) -> None:
    """Declare the job types of the ledger."""

    @app.job("invoice.book", retry=SOON)
    async def book(ctx: Context, invoice: str, cents: int, customer: str = "") -> dict[str, str]:
        """Commit the booking with the completion of the job, or not at all."""
        await asyncio.sleep(random.uniform(0.02, 0.2))
        async with ctx.transaction() as conn:
            await conn.execute(_BOOK, [ctx.job.org_id, ctx.job.job_id, ctx.job.attempt, invoice, cents])
        return {"invoice": invoice, "booked": f"{cents / 100:.2f} EUR"}

    @app.job("invoice.send", category="notification", retry=SOON)
    async def send(ctx: Context, invoice: str, to: str, amount: float) -> dict[str, str]:
        await asyncio.sleep(random.uniform(0.05, 0.4))
        ctx.log.info("invoice %s is handed to the mail server", invoice)
        return {"invoice": invoice, "message_id": f"<{ctx.job.job_id}@mail.example>"}

    @app.job("payment.match", retry=SOON, dependency="bank")
    async def match(ctx: Context, account: str, day: str, expected: int) -> dict[str, int]:
        """Match payments; the bank does not always answer."""
        await asyncio.sleep(random.uniform(0.1, 0.6))
        if random.random() < (0.5 if ctx.attempt == 1 else 0.2):
            ctx.log.warning("the bank did not answer for %s", day)
            raise TimeoutError("the bank did not answer within 5 seconds")
        found = random.randint(0, expected)
        ctx.count(processed=expected, succeeded=found, skipped=expected - found)
        return {"matched": found, "open": expected - found}

    @app.job("dunning.letter", retry=SOON)
    async def remind(invoice: str, level: Literal[1, 2, 3]) -> str:
        if level == 3:
            raise Fail("the customer has objected to letters", code="consent.missing", blocked=True)
        return f"level {level} for {invoice}"

    @app.job("subscription.renew", retry=SOON, schedulable=True)
    async def renew(plan: str, seats: int) -> dict[str, int | str]:
        await asyncio.sleep(0.1)
        return {"plan": plan, "seats": seats}

    @app.job("password.reset_mail", critical=True, retry=SOON)
    async def reset(user: str) -> str:
        await asyncio.sleep(0.05)
        return f"sent to {user}"

    _closing(app, book)


def _closing(app: Duly, book: Job[[str, int, str], dict[str, str]]) -> None:
    @app.job("month.close", category="planning", retry=SOON)
    async def close(ctx: Context, month: str, invoices: list[str]) -> dict[str, int]:
        """Enqueue a booking job for each invoice."""
        ctx.progress(20, "looking for open invoices")
        await asyncio.sleep(0.5)
        await ctx.enqueue_many([book.call(name, random.randint(900, 99_000), month) for name in invoices])
        ctx.progress(90, "all of them are being booked")
        await asyncio.sleep(0.3)
        return {"booked": len(invoices)}
