"""The application of these tests, as the command line finds it."""

from __future__ import annotations

import os

from tests.journeys.worker_process import make_app

_URL = os.environ["DULY_DATABASE_URL"]
app = make_app(_URL, _URL, os.environ["DULY_BLOBS_URL"])
