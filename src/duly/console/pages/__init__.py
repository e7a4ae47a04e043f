"""The pages, each with what can be done there; the menu is in their order."""

from duly.console.pages import account, jobs, orgs, overview, workers

PAGES = (overview, jobs, workers, orgs, account)
