"""Pages are made once for all who see the same, and not more often than they change."""

from __future__ import annotations

import asyncio

import pytest

from duly.console.live import Boards


class Maker:
    """Makes a page, and counts how often."""

    def __init__(self, wrong: Exception | None = None) -> None:
        self.made = 0
        self.wrong = wrong
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self) -> str:
        self.made += 1
        self.begun.set()
        await self.go_on.wait()
        if self.wrong:
            raise self.wrong
        return f"page {self.made}"


async def test_twenty_tabs_share_one_making_of_a_page() -> None:
    boards, make = Boards(), Maker()
    seen = await asyncio.gather(*(boards.made("overview", 60, make) for _ in range(20)))
    assert (set(seen), make.made) == ({"page 1"}, 1)
    assert await boards.made("overview", 60, make) == "page 1"
    assert await boards.made("another", 60, make) == "page 2"
    assert await boards.made("overview", 0, make) == "page 3"


async def test_who_leaves_takes_the_page_from_nobody() -> None:
    boards, make = Boards(), Maker()
    make.go_on.clear()
    first, second = (asyncio.create_task(boards.made("overview", 60, make)) for _ in range(2))
    await make.begun.wait()
    first.cancel()
    make.go_on.set()
    assert await second == "page 1"


async def test_what_went_wrong_is_not_kept() -> None:
    boards, make = Boards(), Maker(LookupError("gone"))
    for _ in range(2):
        with pytest.raises(LookupError):
            await boards.made("job", 60, make)
    assert make.made == 2
