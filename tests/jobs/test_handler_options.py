"""Options of handlers are validated at declaration."""

from __future__ import annotations

from typing import Any

import pytest

from duly import Context, Duly, SyncContext, errors


def test_an_async_handler_cannot_declare_a_sync_context(app: Duly) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:

        @app.job("ctx.wrong")
        async def wrong(ctx: SyncContext) -> None: ...

    assert str(caught.value) == "ctx: SyncContext is for handlers that are not async (annotate it as Context)"


def test_a_sync_handler_cannot_declare_an_async_context(app: Duly) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:

        @app.job("ctx.wrong")
        def wrong(ctx: Context) -> None: ...

    assert (caught.value.field, caught.value.fix) == ("ctx", "annotate it as SyncContext")
    assert "ctx.wrong" not in app.registry


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"never_retry": [5]}, "never_retry"),
        ({"never_retry": [int]}, "never_retry"),
        ({"isolation": "container"}, "isolation"),
        ({"isolation": "process"}, "isolation"),
        ({"memory_limit": 2**30}, "memory_limit"),
    ],
)
def test_an_invalid_handler_option_is_refused_by_name(app: Duly, options: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:

        @app.job("handling.wrong", **options)
        async def wrong() -> None: ...

    assert caught.value.field == field
    assert caught.value.fix
