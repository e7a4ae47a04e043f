"""Cron expressions: seconds, zones, the days on which clocks change, and late ticks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duly.core.errors import ContractError
from duly.features.schedules.cron import Cron, Missed

BERLIN = "Europe/Berlin"
ZONES = [BERLIN, "UTC", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu"]
EXPRESSIONS = [
    *("* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 */2 * * *", "0 0 29 2 *"),
    *("*/10 * * * * *", "5 30 2 * * *", "0 59 23 L * *", "0 0 * * SUN", "*/15 0-2 * * SUN", "0 9 * * MON#1"),
]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def walls(expression: str, zone: str, after: str, n: int) -> list[str]:
    """Return the next ticks as wall times."""
    ticks = islice(Cron.parse(expression, zone).ticks(at(after)), n)
    return [tick.astimezone(ZoneInfo(zone)).isoformat() for tick in ticks]


def test_five_fields_tick_at_the_full_minute() -> None:
    assert walls("*/20 9 * * MON-FRI", "UTC", "2026-11-13T09:30:00Z", 3) == [
        "2026-11-13T09:40:00+00:00",
        "2026-11-16T09:00:00+00:00",
        "2026-11-16T09:20:00+00:00",
    ]


def test_six_fields_begin_with_the_seconds() -> None:
    assert walls("*/25 0 12 * * *", "UTC", "2026-11-15T12:00:01Z", 3) == [
        "2026-11-15T12:00:25+00:00",
        "2026-11-15T12:00:50+00:00",
        "2026-11-16T12:00:00+00:00",
    ]


def test_a_tick_comes_after_the_start_and_not_at_it() -> None:
    cron = Cron.parse("0 12 * * *")
    assert cron.after(at("2026-11-15T12:00:00Z")) == at("2026-11-16T12:00:00Z")
    assert cron.after(at("2026-11-15T11:59:59.999999Z")) == at("2026-11-15T12:00:00Z")
    assert cron.after(at("2026-11-15T12:00:00.000001Z")) == at("2026-11-16T12:00:00Z")


def test_the_same_time_of_day_is_another_instant_in_summer() -> None:
    cron = Cron.parse("0 9 * * *", BERLIN)
    assert cron.after(at("2026-01-10T00:00:00Z")) == at("2026-01-10T08:00:00Z")
    assert cron.after(at("2026-07-10T00:00:00Z")) == at("2026-07-10T07:00:00Z")


def test_the_leap_day_comes_every_fourth_year() -> None:
    ticks = islice(Cron.parse("0 0 29 2 *", BERLIN).ticks(at("2026-01-01T00:00:00Z")), 2)
    assert [tick.year for tick in ticks] == [2028, 2032]


@pytest.mark.parametrize("expression", ["30 2 * * *", "0 30 2 * * *", "10,30,50 2 * * *", "*/9 30 2 * * *"])
def test_a_time_in_the_spring_gap_ticks_once_at_its_end(expression: str) -> None:
    ticks = walls(expression, BERLIN, "2026-03-28T23:00:00Z", 2)
    assert ticks[0] == "2026-03-29T03:00:00+02:00"
    assert ticks[1].startswith("2026-03-30T02:")


def test_a_time_in_the_gap_and_one_at_its_end_are_one_tick() -> None:
    assert walls("0 2,3 * * *", BERLIN, "2026-03-28T23:00:00Z", 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:00:00+02:00",
    ]


@pytest.mark.parametrize("expression", ["30 2 * * *", "0 30 2 * * *"])
@pytest.mark.parametrize("after", ["2026-10-24T22:00:00Z", "2026-10-25T00:29:59Z"])
def test_a_time_in_the_autumn_fold_ticks_the_first_time_only(expression: str, after: str) -> None:
    assert walls(expression, BERLIN, after, 2) == ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]


def test_a_start_in_the_second_hour_of_the_fold_does_not_go_back_to_the_first() -> None:
    assert walls("50 2 * * *", BERLIN, "2026-10-25T01:40:00Z", 1) == ["2026-10-26T02:50:00+01:00"]


def test_an_interval_continues_through_the_gap() -> None:
    assert walls("*/30 * * * *", BERLIN, "2026-03-29T00:00:00Z", 3) == [
        "2026-03-29T01:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-29T03:30:00+02:00",
    ]


def test_an_interval_continues_through_both_hours_of_the_fold() -> None:
    assert walls("*/30 * * * *", BERLIN, "2026-10-25T00:00:00Z", 4) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T03:00:00+01:00",
    ]


def test_a_change_of_half_an_hour_is_a_change() -> None:
    assert walls("0 */2 * * *", "Australia/Lord_Howe", "2026-04-04T13:00:00Z", 2) == [
        "2026-04-05T02:00:00+10:30",
        "2026-04-05T04:00:00+10:30",
    ]


def test_a_gap_at_midnight_belongs_to_the_new_day() -> None:
    after = "2026-09-06T03:00:00Z"
    assert walls("0 0 * * *", "America/Santiago", after, 1) == ["2026-09-06T01:00:00-03:00"]
    assert walls("*/10 0 * * SUN", "America/Santiago", after, 1) == ["2026-09-13T00:00:00-03:00"]


def test_a_day_that_a_country_skipped_still_has_its_tick() -> None:
    assert walls("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", 2) == [
        "2011-12-31T00:00:00+14:00",
        "2011-12-31T12:00:00+14:00",
    ]


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * * *", "60 * * * *", "* 24 * * *", "0 0 31 13 *", "0 0 32 2 *",
     "*/0 * * * *", "5-1 * * * *",
     "@reboot", "@daily *", "@", "a b c d e", "9" * 5000 + " * * * *", None, 5],
)  # fmt: skip
def test_a_bad_expression_is_refused_by_name(expression: str) -> None:
    with pytest.raises(ContractError) as refused:
        Cron.parse(expression)
    assert refused.value.field == "cron"
    assert "five fields" in (refused.value.fix or "")


@pytest.mark.parametrize(
    "zone",
    ["Mars/Olympus", "America", "", "../UTC", "/etc/localtime", "localtime", "right/UTC", "posix/UTC", "a\0b",
     "x" * 5000, "\ud800", None, 5],
)  # fmt: skip
def test_a_bad_zone_is_refused_by_name(zone: str) -> None:
    with pytest.raises(ContractError) as refused:
        Cron.parse("* * * * *", zone)
    assert refused.value.field == "timezone"
    assert "Europe/Berlin" in (refused.value.fix or "")


def test_an_expression_that_never_matches_has_no_tick() -> None:
    assert Cron.parse("0 0 */31 * 1#3").after(at("2026-01-01T00:00:00Z")) is None


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 2 *", "0 0 0 31 4,6 *", "0 0 30-31 FEB *"])
def test_a_day_that_no_month_has_is_refused_as_such(expression: str) -> None:
    with pytest.raises(ContractError, match="none of its months has such a day") as refused:
        Cron.parse(expression)
    assert (refused.value.field, refused.value.fix) == ("cron", "use days that the months have")


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        (" @Midnight ", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_an_alias_is_expanded(word: str, fields: str) -> None:
    assert Cron.parse(word, BERLIN) == Cron.parse(fields, BERLIN)
    assert Cron.parse(word).expression == fields


def test_spaces_do_not_make_another_expression() -> None:
    assert Cron.parse(" 0  3 * *   * ") == Cron.parse("0 3 * * *")


DUE = [at(f"2026-11-15T12:0{minute}:00Z") for minute in range(5)]
NOW = at("2026-11-15T12:04:30Z")


@pytest.mark.parametrize(
    ("policy", "more", "run"),
    [
        (Missed.ALL, False, DUE),
        (Missed.ALL, True, DUE),
        (Missed.ONCE, False, DUE[-1:]),
        (Missed.ONCE, True, []),
        (Missed.SKIP, False, DUE[-1:]),
    ],
)
def test_the_policy_decides_which_late_ticks_run(policy: Missed, more: bool, run: list[datetime]) -> None:
    assert policy.to_run(DUE, more=more, now=NOW, tolerance=timedelta(seconds=60)) == run


def test_skip_runs_ticks_within_the_tolerance() -> None:
    late = timedelta(minutes=2, seconds=30)
    assert Missed.SKIP.to_run(DUE, more=False, now=NOW, tolerance=late) == DUE[2:]
    assert Missed.SKIP.to_run([], more=False, now=NOW, tolerance=late) == []


CRONS = st.builds(Cron.parse, st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES))
# Half of the moments lie near a change of the clocks.
CHANGES = [at("2026-03-29T01:00:00Z"), at("2026-10-25T01:00:00Z"), at("2026-04-04T15:00:00Z"),
           at("2026-10-03T15:30:00Z"), at("2026-09-06T04:00:00Z"), at("2026-04-05T03:00:00Z"),
           at("2026-03-08T07:00:00Z"), at("2026-11-01T06:00:00Z")]  # fmt: skip
MOMENTS = st.one_of(
    st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),
    st.builds(
        lambda change, seconds: change + timedelta(seconds=seconds),
        st.sampled_from(CHANGES),
        st.floats(-10_000, 10_000, allow_nan=False),
    ),
)


@given(CRONS, MOMENTS)
def test_ticks_strictly_increase_and_lie_after_the_start(cron: Cron, moment: datetime) -> None:
    ticks = [moment, *islice(cron.ticks(moment), 12)]
    assert all(earlier < later for earlier, later in pairwise(ticks))
    assert all(tick.microsecond == 0 and tick.tzinfo is UTC for tick in ticks[1:])


@given(CRONS, MOMENTS)
@example(Cron.parse("30 2 * * *", BERLIN), at("2026-10-25T00:10:00Z"))
def test_walking_from_tick_to_tick_is_the_same_as_walking_on(cron: Cron, moment: datetime) -> None:
    ticks = list(islice(cron.ticks(moment), 8))
    stepped, here = [], moment
    for _ in ticks:
        here = cron.after(here) or moment
        stepped.append(here)
    assert stepped == ticks


@given(CRONS, MOMENTS, st.integers(0, 999))
def test_no_tick_lies_between_the_start_and_its_next_tick(
    cron: Cron, moment: datetime, thousandths: int
) -> None:
    tick = cron.after(moment)
    assert tick is not None
    assert cron.after(moment + (tick - moment) * thousandths // 1000) == tick


@settings(max_examples=25)
@given(CRONS.filter(lambda cron: not cron.fixed), MOMENTS)
def test_an_interval_ticks_exactly_when_the_wall_clock_matches(cron: Cron, moment: datetime) -> None:
    start = moment.replace(microsecond=0)
    seconds = [start + timedelta(seconds=n) for n in range(1, 5401)]
    as_if_utc = Cron.parse(cron.expression)
    walls = {second: second.astimezone(cron.zone).replace(tzinfo=UTC) for second in seconds}
    expected = [s for s, wall in walls.items() if as_if_utc.after(wall - timedelta(seconds=1)) == wall]
    assert cron.due(start, seconds[-1], 10_000) == expected


@given(CRONS.filter(lambda cron: cron.fixed), st.dates(date(2020, 1, 1), date(2040, 1, 1)))
def test_a_fixed_time_ticks_on_each_of_its_days_as_often_as_in_utc(cron: Cron, day: date) -> None:
    """Unless several of its times fall into one gap: they are one tick."""
    midnight = datetime(day.year, day.month, day.day)
    usual = len(Cron.parse(cron.expression).due(*_day(midnight, UTC), 100))
    found = len(cron.due(*_day(midnight, cron.zone), 100))
    gap = cron.zone.utcoffset(midnight + timedelta(days=1)) - cron.zone.utcoffset(midnight)
    assert found == usual or (gap > timedelta(0) and 1 <= found < usual)


def _day(midnight: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the last second before a day, and the last second of the day."""
    start = midnight.replace(tzinfo=zone) - timedelta(seconds=1)
    return start, (midnight + timedelta(days=1, seconds=-1)).replace(tzinfo=zone, fold=1)
