"""Accessibility checks by axe-core."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Page

_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_BAD = ("serious", "critical")
# Not as a script of the page, which its policy forbids; by the tools of the browser.
_RUN = """rules => axe.run({
    runOnly: rules, resultTypes: ["violations"], preload: false, elementRef: false,
}).then(found => found.violations)"""


async def findings(page: Page) -> list[str]:
    """What is seriously wrong with the page as it is now."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    found: list[dict[str, Any]] = await page.evaluate(_RUN, _RULES)
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} {node['failureSummary']}"
        for one in found
        if one["impact"] in _BAD
        for node in one["nodes"]
    ]
