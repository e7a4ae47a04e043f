"""The client's types are the service's responses, and its old names still work for a while."""

from __future__ import annotations

import warnings

import pytest
from pydantic import BaseModel

from duly import client
from duly.client import responses
from duly.features.events.routes import EventPage
from duly.features.job_logs.routes import LogLineResponse
from duly.features.job_results.routes import ArtifactResponse, ResultResponse, SnapshotResponse, UploadedBlob
from duly.features.jobs.models import Accepted, EventResponse, FreshnessResponse, JobStatus
from duly.features.subscriptions.routes import SubscriptionResponse

LINKS = {"status_url", "events_url", "result_url", "url"}
"""The client builds URLs from ids."""
COMPLETE = [
    (responses.JobStatus, JobStatus, set()),
    (responses.RemoteFreshness, FreshnessResponse, set()),
    (responses.RemoteEvent, EventResponse, set()),
    (responses.RemoteLogLine, LogLineResponse, set()),
    (responses.RemoteSnapshot, SnapshotResponse, {"large"}),
    (responses.RemoteResult, ResultResponse, set()),
    (responses.RemoteArtifact, ArtifactResponse, set()),
]
PARTIAL = [
    (responses.AcceptedJob, Accepted),
    (responses.StoredBlob, UploadedBlob),
    (responses.CreatedSubscription, SubscriptionResponse),
]


@pytest.mark.parametrize(("parsed", "sent", "unread"), COMPLETE)
def test_the_client_has_every_field_that_the_service_sends(
    parsed: type[BaseModel], sent: type[BaseModel], unread: set[str]
) -> None:
    assert set(parsed.model_fields) == set(sent.model_fields) - LINKS - unread


@pytest.mark.parametrize(("parsed", "sent"), PARTIAL)
def test_the_client_reads_no_field_that_the_service_does_not_send(
    parsed: type[BaseModel], sent: type[BaseModel]
) -> None:
    assert set(parsed.model_fields) <= set(sent.model_fields)


def test_a_page_has_the_fields_of_the_service_response() -> None:
    page = responses.page_of("events", responses.RemoteEvent)
    assert set(page.model_fields) == set(EventPage.model_fields)


def test_names_of_the_previous_version_work_with_a_warning() -> None:
    for old, new in client._OLD_NAMES.items():
        with pytest.warns(DeprecationWarning, match=f"duly.client.{new.__name__}"):
            assert getattr(client, old) is new
    with warnings.catch_warnings(), pytest.raises(AttributeError):
        client.Nonsense  # noqa: B018
