"""The service of jobs, and jobs that block until they are released."""

from __future__ import annotations

import pytest

from duly import Duly
from duly.features.jobs.service import Jobs
from tests.worker.blocking_jobs import BlockingJobs


@pytest.fixture
def blocking(app: Duly) -> BlockingJobs:
    return BlockingJobs(app)


@pytest.fixture
def jobs(app: Duly) -> Jobs:
    return Jobs(app)
