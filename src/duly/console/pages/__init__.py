"""The pages, each with what can be done there; the menu is in their order."""

from duly.console.pages import account, overview

PAGES = (overview, account)
