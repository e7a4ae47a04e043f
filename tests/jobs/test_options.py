"""Options of declarations and of single calls."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, Job, RetryPolicy, context, errors
from duly.core.policy import CATEGORY_POLICIES, Category
from duly.jobs.enqueue_options import EnqueueOptions

_TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def declare(app: Duly, **options: Any) -> Job[[str], None]:
    @app.job(options.pop("name", "report.build"), **options)
    async def build(region: str) -> None: ...

    return build


def identity(value: Any) -> str | None:
    return EnqueueOptions.of(run_identity=value).run_identity_hash


async def test_a_category_gives_queue_and_defaults(app: Duly) -> None:
    policy = declare(app, category="document").policy
    assert (policy.queue, policy.retry.max_attempts, policy.schedulable) == ("q:default", 4, False)
    assert policy.retry.delays[0] == timedelta(minutes=1)


async def test_options_of_a_declaration_override_its_category(app: Duly) -> None:
    own = declare(app, category="planning", queue="q:reports", priority=7, retry=RetryPolicy(max_attempts=9))
    assert (own.policy.queue, own.policy.priority, own.policy.retry.max_attempts) == ("q:reports", 7, 9)
    assert own.policy.ledger_ttl == timedelta(days=30)


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"category": "urgent"}, "category", "'urgent' is not a category"),
        ({"queue": "q:critical"}, "queue", "pass critical=True"),
        ({"queue": "q:deadletter"}, "policy", "reserved for dead letters"),
        ({"queue": "reports"}, "queue", "pattern"),
        ({"priority": 1001}, "priority", "less than or equal to 1000"),
        ({"timeout": timedelta(0)}, "timeout", "greater than 0"),
        ({"name": "Report Build"}, "name", "lower_case.words"),
        ({"name": "report..build"}, "name", "lower_case.words"),
    ],
)
async def test_an_invalid_declaration_is_refused(
    app: Duly, options: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=words) as caught:
        declare(app, **options)
    assert caught.value.field == field
    assert caught.value.fix


async def test_the_critical_queue_must_be_requested_explicitly(app: Duly) -> None:
    assert declare(app, critical=True).policy.queue == "q:critical"
    assert declare(app, name="other.build", critical=True, queue="q:critical").policy.queue == "q:critical"


async def test_declaring_a_name_twice_is_refused(app: Duly) -> None:
    first = declare(app)
    with pytest.raises(errors.ConfigurationError, match="is declared twice"):
        declare(app)
    assert app.registry.get("report.build") is first


async def test_an_unknown_job_type_names_the_known_ones(app: Duly) -> None:
    declare(app)
    with pytest.raises(errors.UnknownJobType, match=r"declared: report\.build"):
        app.registry.get("report.built")


async def test_an_unknown_option_is_named(app: Duly) -> None:
    with pytest.raises(errors.ContractError) as caught:
        declare(app).options(prioriti=5)  # type: ignore[call-arg]
    assert caught.value.field == "prioriti"
    assert "'priority'" in (caught.value.fix or "")


async def test_options_of_a_call_do_not_change_the_job_type(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app)
    await build.options(priority=9).enqueue("DE")
    assert (await (await build.enqueue("FR")).status()).priority == 0


@pytest.mark.parametrize(
    ("options", "priority"),
    [({"priority": -1000}, -1000), ({"priority": 1000}, 1000), ({"expedite": True}, 50)],
)
async def test_a_job_has_the_priority_of_its_call(
    app: Duly, acting: uuid.UUID, options: dict[str, Any], priority: int, sql: psycopg.Connection
) -> None:
    job = await (await declare(app, priority=7).options(**options).enqueue("DE")).status()
    assert job.priority == priority
    assert sql.execute("select rank from duly.ready").fetchone() == (-priority,)


async def test_an_expedited_job_is_of_the_expedite_class(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    await declare(app).options(expedite=True).enqueue("DE")
    assert sql.execute("select priority_class from duly.jobs").fetchone() == ("expedite",)


@pytest.mark.parametrize("priority", [-1001, 1001, 1.5, "high", True])
async def test_a_priority_is_a_whole_number_within_its_range(
    app: Duly, acting: uuid.UUID, priority: Any
) -> None:
    with pytest.raises(errors.ContractError) as caught:
        await declare(app).options(priority=priority).enqueue("DE")
    assert (caught.value.field, caught.value.fix) == ("priority", "use -1000 to 1000")


async def test_a_single_call_may_be_critical(app: Duly, acting: uuid.UUID) -> None:
    job = await (await declare(app).options(critical=True).enqueue("DE")).status()
    assert job.queue == "q:critical"


async def test_only_default_jobs_may_be_critical(app: Duly, acting: uuid.UUID) -> None:
    with pytest.raises(errors.ContractError, match="of category planning") as caught:
        await declare(app, category="planning").options(critical=True).enqueue("DE")
    assert caught.value.field == "critical"


async def test_a_time_without_a_zone_or_without_an_end_is_refused(app: Duly, acting: uuid.UUID) -> None:
    build, west = declare(app, schedulable=True), timezone(timedelta(hours=-14))
    with pytest.raises(errors.ContractError, match="has no time zone") as caught:
        await build.options(scheduled_for=datetime(2099, 1, 1)).enqueue("DE")
    assert caught.value.field == "scheduled_for"
    # In the year 10000 of UTC: neither the job nor a list with it could be read.
    with pytest.raises(errors.ContractError, match="is too late") as caught:
        await build.options(scheduled_for=datetime.max.replace(tzinfo=west)).enqueue("DE")
    assert caught.value.field == "scheduled_for"


async def test_the_same_payload_at_another_time_is_another_job(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app, schedulable=True)
    at = datetime(2099, 1, 1, tzinfo=UTC)
    first = await build.options(scheduled_for=at).enqueue("DE")
    same = await build.options(scheduled_for=at.astimezone()).enqueue("DE")
    later = await build.options(scheduled_for=at + timedelta(days=1)).enqueue("DE")
    assert first.job_id == same.job_id != later.job_id


@pytest.mark.parametrize("wrong", ["", "00-abc-def-01", _TRACE.upper(), f"{_TRACE}-00"])
def test_an_invalid_traceparent_is_refused(wrong: str) -> None:
    with pytest.raises(errors.ContractError, match="not a W3C traceparent") as caught:
        EnqueueOptions.of(traceparent=wrong)
    assert caught.value.field == "traceparent"
    with pytest.raises(errors.ContractError, match="not a W3C traceparent"), context(traceparent=wrong):
        pass


@pytest.mark.parametrize("field", ["org_id", "project_id"])
def test_an_invalid_id_is_refused(field: str) -> None:
    with pytest.raises(errors.ContractError, match="'acme' is not a uuid") as caught:
        EnqueueOptions.of(**{field: "acme"})  # type: ignore[arg-type]
    assert caught.value.field == field


async def test_options_of_a_call_are_merged_with_the_context(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    options = {"actor": Actor.api_key("k1"), "correlation_id": "c-1", "metadata": {"source": "import"}}
    handle = await declare(app).options(org_id=str(acting), traceparent=_TRACE, **options).enqueue("DE")
    job = await handle.status()
    assert (job.actor_type, job.actor_id, job.request_id, job.correlation_id) == (
        "api_key",
        "k1",
        "req-1",
        "c-1",
    )
    assert job.traceparent == _TRACE
    row = sql.execute("select trace_id, metadata from duly.jobs").fetchone()
    assert row == (_TRACE.split("-")[1], {"source": "import"})


async def test_contexts_nest(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app)
    with context(actor=Actor.system("cron"), traceparent=_TRACE), context(correlation_id="c-2"):
        inner = await (await build.enqueue("DE")).status()
    outer = await (await build.enqueue("FR")).status()
    assert (inner.actor_id, inner.correlation_id, inner.request_id, inner.traceparent) == (
        "cron",
        "c-2",
        "req-1",
        _TRACE,
    )
    assert (outer.actor_id, outer.correlation_id, outer.traceparent) == ("u1", "req-1", None)


def test_a_run_identity_does_not_depend_on_the_order_of_keys() -> None:
    assert identity({"a": 1, "b": {"c": 2, "d": 3}}) == identity({"b": {"d": 3, "c": 2}, "a": 1})
    assert identity({"a": 1}) != identity({"a": "1"})
    assert identity(["a", "b"]) != identity(["b", "a"])
    assert len(identity("nightly") or "") == 64


def test_a_run_identity_does_not_depend_on_the_order_within_a_set() -> None:
    first, second = {0, 8}, {8, 0}
    assert (first == second, str(first) == str(second)) == (True, False)
    assert identity({"ids": first}) == identity({"ids": second}) == identity({"ids": frozenset(second)})
    assert identity(first) != identity({0, 16})


def test_a_job_without_run_identity_has_no_identity_hash() -> None:
    assert identity(None) is None
    assert identity(0) == identity(0)
    assert identity(0) != identity("")


def test_a_run_identity_takes_ids_and_dates() -> None:
    assert identity([uuid.UUID(int=1), datetime(2026, 1, 1, tzinfo=UTC)]) == identity(
        [str(uuid.UUID(int=1)), "2026-01-01 00:00:00+00:00"]
    )


def test_a_category_can_be_reused_after_its_defaults_were_dumped(app: Duly) -> None:
    assert CATEGORY_POLICIES[Category.AUDIT].as_json
    assert app.job("audit.again", category="audit")(lambda: None).policy == CATEGORY_POLICIES[Category.AUDIT]
