"""One change for many jobs: first what it would do, then the change itself, done as a job of its own.

The job type `duly.bulk` goes through a list in batches. Each batch commits together with the place that it
came to, so nothing is done twice, whatever dies meanwhile. It is built on `control` and the worker's context.
"""

from duly.bulk.bulk import Bulk, Impact
from duly.bulk.job import declare
from duly.bulk.plan import JOB_TYPE, Verb
from duly.store.queues import Count

__all__ = ["JOB_TYPE", "Bulk", "Count", "Impact", "Verb", "declare"]
