"""The pages, each with what can be done there; the menu is in their order."""

from duly.console.pages import account, orgs, overview, workers

PAGES = (overview, workers, orgs, account)
