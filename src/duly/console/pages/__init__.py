"""The pages, each with what can be done there; the menu is in their order."""

from duly.console.pages import account, dead, job, job_fix, orgs, overview, workers

PAGES = (overview, job, job_fix, dead, workers, orgs, account)
