"""What a handler may say about its own attempt, returned or raised."""

from __future__ import annotations

from datetime import timedelta

from duly.model.errors import ContractError


class Verdict(Exception):
    """How this attempt ends. Return it, or raise it from wherever you are."""


class Retry(Verdict):
    """Try again later. `after` is a floor, such as a provider's Retry-After."""

    def __init__(
        self,
        reason: str = "the handler asked for another try",
        *,
        after: timedelta | float | None = None,
        code: str = "handler.retry",
        dependency: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = None if after is None else _duration("after", after)
        self.code = code
        self.dependency = dependency


class Snooze(Verdict):
    """Not now: come back after the delay, without spending the attempt."""

    def __init__(self, delay: timedelta | float, reason: str = "snoozed by the handler") -> None:
        super().__init__(reason)
        self.delay = _duration("delay", delay)
        self.reason = reason


class Cancel(Verdict):
    """Stop for good: the job ends as canceled, by the worker."""

    def __init__(self, reason: str = "canceled by the handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Fail(Verdict):
    """Fail for good, whatever attempts are left; `blocked` when a precondition refused the work."""

    def __init__(self, reason: str, *, code: str = "handler.failed", blocked: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.blocked = blocked


def _duration(field: str, value: timedelta | float) -> timedelta:
    try:
        duration = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        raise ContractError(
            f"{value!r} is no duration", field=field, fix="pass seconds or a timedelta"
        ) from None
    if duration < timedelta(0):
        raise ContractError(f"{value!r} lies in the past", field=field, fix="pass zero or more")
    return duration
