"""The pages, each with what can be done there; the menu is in their order."""

from duly.console.pages import (
    account,
    audit,
    documents,
    notifications,
    orgs,
    overview,
    schedules,
    webhooks,
    workers,
)

PAGES = (overview, schedules, workers, orgs, notifications, webhooks, documents, audit, account)
