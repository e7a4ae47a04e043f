"""Classification, filing rules and connectors over HTTP."""

from __future__ import annotations

import uuid

import httpx

from duly import Duly
from tests.apps.documents.http_requests import DOCUMENTS, folder, send
from tests.worker.working import WAIT_TIMEOUT, working

CONNECTORS = f"{DOCUMENTS}/connectors"
ACCOUNT = {"provider": "dropbox", "name": "Scans", "secret_ref": "file:dropbox"}


async def test_a_document_is_classified_and_its_type_confirmed(
    http: httpx.AsyncClient, library: Duly, org: uuid.UUID
) -> None:
    text = "Rechnung Nr. 17\nRechnungsdatum 1. Mai 2026\nGesamtbetrag 119,00 EUR inkl. 19 % MwSt."
    sent = await send(http, text, "Rechnung.txt", engine="fast")
    where = f"{DOCUMENTS}/{sent['document']['document_id']}"
    async with working(library):
        await library.handle(sent["job_id"], org_id=org).wait(WAIT_TIMEOUT)
        again = await http.post(f"{where}/classification")
        assert again.status_code == 202
        ended = await library.handle(again.json()["job_id"], org_id=org).wait(WAIT_TIMEOUT)
        measured = await http.post(f"{DOCUMENTS}/classifier/evaluate")
        report = await library.handle(measured.json()["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    assert (ended.status, report.outcome) == ("completed", "blocked"), "nothing was confirmed yet"
    said = (await http.get(f"{where}/classification")).json()
    assert (len(said["classifications"]), said["classifications"][0]["doc_type"]) == (2, "invoice")
    assert said["classifications"][0]["evidence"]
    assert [one["name"] for one in await _listed(http, doc_type="invoice")] == ["Rechnung.txt"]
    confirmed = await http.put(f"{where}/doc_type", json={"doc_type": "reminder"})
    assert (confirmed.json()["doc_type"], confirmed.json()["doc_type_confirmed"]) == ("reminder", True)
    assert (await http.put(f"{where}/doc_type", json={"doc_type": "No Type"})).status_code == 422
    [one] = (await http.get(f"{where}/classification")).json()["confirmations"]
    assert one["doc_type"] == "reminder"


async def test_documents_with_an_unsure_type_are_listed_for_review(
    http: httpx.AsyncClient,
    clerk: httpx.AsyncClient,
    stranger: httpx.AsyncClient,
    library: Duly,
    org: uuid.UUID,
) -> None:
    closed = await folder(http, "Personal")
    await http.put(
        f"{DOCUMENTS}/folders/{closed}/grants", json={"grants": [{"principal": "user:x", "level": "read"}]}
    )
    for name, more in (("a.txt", {}), ("b.txt", {}), ("c.txt", {"node_id": closed})):
        sent = await send(http, f"Guten Tag {name}", name, engine="fast", **more)
        async with working(library):
            await library.handle(sent["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    first = (await clerk.get(f"{DOCUMENTS}/review", params={"limit": 1})).json()
    [unsure] = first["unsure"]
    assert (unsure["document"]["name"], unsure["classification"]["review"]) == ("b.txt", True)
    rest = (await clerk.get(f"{DOCUMENTS}/review", params={"after": first["after"]})).json()
    assert ([one["document"]["name"] for one in rest["unsure"]], rest["after"]) == (["a.txt"], None)
    await clerk.put(f"{DOCUMENTS}/{unsure['document']['document_id']}/doc_type", json={"doc_type": "other"})
    seen = [(await one.get(f"{DOCUMENTS}/review")).json()["unsure"] for one in (clerk, http, stranger)]
    names = [[one["document"]["name"] for one in queue] for queue in seen]
    assert names == [["a.txt"], ["c.txt", "a.txt"], []]


async def test_an_external_service_is_used_only_with_consent(
    http: httpx.AsyncClient, library: Duly, org: uuid.UUID
) -> None:
    where = f"{DOCUMENTS}/{(await send(http, 'Brief'))['document']['document_id']}/classification"
    ended = {}
    for consent in (False, True):
        asked = await http.post(where, json={"engine": "remote", "consent": consent})
        async with working(library):
            job = await library.handle(asked.json()["job_id"], org_id=org).wait(WAIT_TIMEOUT)
        ended[consent] = (job.outcome, job.error_code)
    assert ended == {
        False: ("blocked", "classification.no_consent"),
        True: ("blocked", "classification.not_configured"),
    }
    entries = (await library.audit.list(org, action="document.classification_asked")).entries
    assert [one.detail["consent"] for one in entries] == [True, False]
    assert (await http.post(where, json={"engine": "remote", "consent": "yes"})).status_code == 422


async def _listed(http: httpx.AsyncClient, **params: str) -> list[dict[str, str]]:
    return list((await http.get(DOCUMENTS, params=params)).json()["documents"])


async def test_filing_rules_are_set_and_removed(http: httpx.AsyncClient) -> None:
    rule = {"doc_type": "invoice", "node_id": await folder(http, "Rechnungen")}
    assert (await http.put(f"{DOCUMENTS}/filing", json=rule)).json() == {"rules": [rule]}
    assert (await http.get(f"{DOCUMENTS}/filing")).json() == {"rules": [rule]}
    gone = await http.put(f"{DOCUMENTS}/filing", json={**rule, "node_id": None})
    assert gone.json() == {"rules": []}
    assert (await http.get(f"{DOCUMENTS}/classifier")).json() == {"models": []}
    assert (await http.post(f"{DOCUMENTS}/classifier/train")).status_code == 202


async def test_admins_create_connectors_and_members_import_with_them(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient
) -> None:
    assert (await clerk.post(CONNECTORS, json=ACCOUNT)).status_code == 403
    made = await http.post(CONNECTORS, json=ACCOUNT)
    where = made.headers["location"]
    assert (made.status_code, made.json()["name"], made.json()["node_id"]) == (201, "Scans", None)
    assert (await http.post(CONNECTORS, json=ACCOUNT)).json()["code"] == "connector.name_taken"
    secret = await http.post(CONNECTORS, json={**ACCOUNT, "name": "b", "secret_ref": "sk-live-12345678"})
    assert (secret.status_code, "sk-live" in secret.text) == (422, False)
    [seen] = (await clerk.get(CONNECTORS)).json()["connectors"]
    assert seen == (await clerk.get(where)).json() == made.json()
    begun = await clerk.post(f"{where}/import", json={"remote_path": "Scans", "files": ["a.pdf"]})
    assert begun.status_code == 202
    assert (await clerk.get(begun.json()["status_url"])).json()["job_type"] == "import_dropbox"
    for wrong in ({"remote_path": "../up"}, {"files": [""]}, {"path": "a"}):
        assert (await clerk.post(f"{where}/import", json=wrong)).status_code == 422, wrong
    for client, status in ((clerk, 403), (http, 200)):
        change = {"disabled": True, "reason": "old"}
        assert (await client.patch(where, json=change)).status_code == status
    assert (await clerk.post(f"{where}/import", json={})).status_code == 409
    assert (await http.patch(where, json={"disabled": False, "reason": "new"})).json()["disabled_at"] is None
    assert (await http.delete(where, params={"reason": "over"})).status_code == 204
    assert (await clerk.get(where)).json()["code"] == "connector.unknown"
