"""The modules of pages; the menu has their order."""

from duly.apps.documents.library import console_pages as documents
from duly.features.audit import pages as audit
from duly.features.bulk import pages as bulk
from duly.features.dead_letters import pages as dead
from duly.features.job_detail import fix_page as job_fix
from duly.features.job_detail import pages as job
from duly.features.jobs import pages as jobs
from duly.features.notifications import pages as notifications
from duly.features.orgs import pages as orgs
from duly.features.overview import pages as overview
from duly.features.schedules import pages as schedules
from duly.features.sessions import pages as account
from duly.features.webhooks import pages as webhooks
from duly.features.workers import pages as workers

PAGES = (
    overview,
    jobs,
    bulk,
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
