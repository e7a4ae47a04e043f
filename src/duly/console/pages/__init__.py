"""The pages, each with what can be done there; the menu is in their order."""

from duly.console.pages import (
    account,
    audit,
    dead,
    documents,
    job,
    job_fix,
    jobs,
    notifications,
    orgs,
    overview,
    schedules,
    webhooks,
    workers,
)

PAGES = (
    overview,
    jobs,
    job,
    job_fix,
    dead,
    schedules,
    workers,
    orgs,
    notifications,
    webhooks,
    documents,
    audit,
    account,
)
