"""Allowed addresses: only public ones, however they are written and whatever names resolve to later."""

from __future__ import annotations

import asyncio
import gc
import itertools
import socket
import threading
import uuid
from ipaddress import ip_address
from typing import Any

import httpcore
import pytest

from duly import errors
from duly.features.webhooks import network_backend
from duly.features.webhooks.allowed_destinations import AllowedUrls, is_public
from duly.features.webhooks.models import HttpResult
from duly.features.webhooks.network_backend import (
    MAX_LOOKUPS_PER_ORG,
    ForbiddenAddress,
    NetworkGuard,
    Resolver,
    TooManyLookups,
    lookup_org,
)
from duly.features.webhooks.sender import Sender
from tests.features.webhooks.receiver import receiving

PRIVATE = (
    *("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "255.255.255.255", "224.0.0.1", "239.1.1.1", "240.0.0.1", "198.18.0.1", "192.0.0.8"),
    *("192.0.2.1", "192.88.99.1", "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8"),
    *("2002:7f00:1::", "2001:0:a00:1::", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "fe80::1%eth0"),
)
PUBLIC = ("8.8.8.8", "93.184.216.34", "2606:4700::1", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8")


def test_only_globally_reachable_addresses_are_public() -> None:
    assert [one for one in PRIVATE if is_public(ip_address(one.partition("%")[0]))] == []
    assert [one for one in PUBLIC if not is_public(ip_address(one))] == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hook",
        "ftp://example.com",
        "https://",
        "https:///path",
        "example.com",
        "https://user:word@example.com/",
        "https://@example.com/",
        "https://example.com:22/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com/#part",
        "https://exa mple.com/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com/\r\nx: y",
        "https://bücher.example/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://example.com/" + "x" * 2000,
        None,
    ],
)
def test_a_forbidden_url_is_refused_when_the_endpoint_is_created(url: Any) -> None:
    with pytest.raises(errors.ContractError) as refused:
        AllowedUrls().check(url)
    assert refused.value.field == "url"
    assert refused.value.fix


def test_allowed_hosts_may_be_private_and_without_tls() -> None:
    allowed = AllowedUrls(["Receiver.internal", "10.0.0.0/8", "127.0.0.1"])
    for url in ("http://receiver.internal:81/x", "http://10.1.2.3/", "https://example.com:8443/a?b=c"):
        assert allowed.check(url) == url
    for url in ("http://127.0.0.2/", "http://other.internal/"):
        with pytest.raises(errors.ContractError):
            allowed.check(url)


@pytest.mark.parametrize(
    "host", ["localhost", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]"]
)
async def test_loopback_is_refused_however_it_is_written(host: str) -> None:
    async with (
        receiving() as receiver,
        Sender(NetworkGuard(AllowedUrls()), timeout=5, connections=1) as sender,
    ):
        result = await sender.send(f"https://{host}:{receiver.port}/200", {}, b"{}")
    assert result.status is None
    assert result.error
    assert result.error.startswith("refused: "), result.error
    assert receiver.connections == 0


async def test_a_name_is_resolved_once_and_only_the_checked_address_is_used() -> None:
    """It resolves to 127.0.0.2, which is allowed here, then to 127.0.0.1, which gets no connection."""
    answers = iter([["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2", "127.0.0.1"]])

    async def resolve(host: str, port: int) -> list[str]:
        assert host == "hook.test"
        return next(answers)

    guard = NetworkGuard(AllowedUrls(["127.0.0.2"]), resolve)
    async with receiving("127.0.0.2") as right, receiving("127.0.0.1") as wrong:
        stream = await guard.connect_tcp("hook.test", right.port)
        assert stream.get_extra_info("server_addr") == ("127.0.0.2", right.port)
        await stream.aclose()
        for _ in range(2):
            with pytest.raises(ForbiddenAddress):
                await guard.connect_tcp("hook.test", wrong.port)
        assert wrong.connections == 0


async def test_a_name_that_resolves_too_slowly_is_a_timeout() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(httpcore.ConnectTimeout):
        await NetworkGuard(AllowedUrls(), never).connect_tcp("hook.test", 443, timeout=0.01)
    with pytest.raises(ForbiddenAddress):
        await NetworkGuard(AllowedUrls()).connect_unix_socket("/run/docker.sock")


async def test_errors_do_not_reveal_which_internal_names_exist() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        if host == "unknown.test":
            raise socket.gaierror
        return {"inside.test": ["10.0.0.1"], "both.test": ["8.8.8.8", "10.0.0.1"]}.get(host, [])

    async with Sender(NetworkGuard(AllowedUrls(), resolve), timeout=5, connections=1) as sender:
        hosts = ("unknown.test", "inside.test", "both.test", "empty.test")
        errors = {(await sender.send(f"https://{host}/", {}, b"{}")).error for host in hosts}
    assert errors == {"refused: the host has no public address"}


async def test_names_that_never_resolve_only_delay_the_org_that_uses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their threads stay busy after the callers gave up; lookups of others and other work do not wait."""
    real, over, started = socket.getaddrinfo, threading.Event(), list[str]()

    def look_up(host: str, *more: Any, **options: Any) -> Any:
        if host.endswith("slow.test"):
            started.append(host)
            over.wait(30)
        return real("127.0.0.1", *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(network_backend, "_LOOKUP_QUEUE_TIMEOUT", 0.3)

    async def send(org: uuid.UUID, url: str) -> HttpResult:
        lookup_org.set(org)
        return await sender.send(url, {}, b"{}")

    orgs = [uuid.uuid4() for _ in range(10)]
    try:
        async with (
            receiving() as receiver,
            Sender(
                NetworkGuard(AllowedUrls(["127.0.0.1", "good.test"])), timeout=5, connections=200
            ) as sender,
        ):
            slow = [asyncio.create_task(send(one, "https://slow.test/")) for one in orgs * 10]
            async with asyncio.timeout(4):
                while len(started) < MAX_LOOKUPS_PER_ORG * len(orgs):
                    await asyncio.to_thread(int)
                found = await asyncio.create_task(send(uuid.uuid4(), receiver.url(host="good.test")))
            assert found.status == 200
            rest = len(slow) - len(started)
            crowded = [await one for one in itertools.islice(asyncio.as_completed(slow), rest)]
            assert not any(one.counts for one in crowded), "their endpoints were not contacted"
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            again = await asyncio.create_task(send(orgs[0], "https://slow.test/"))
            assert (again.counts, len(started)) == (False, MAX_LOOKUPS_PER_ORG * len(orgs)), "still busy"
    finally:
        over.set()


async def test_an_abandoned_lookup_keeps_its_slot_until_it_ends_and_its_error_is_not_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over, threads, complaints = threading.Event(), list[threading.Thread](), list[dict[str, Any]]()

    def look_up(*_: Any, **__: Any) -> Any:
        threads.append(threading.current_thread())
        over.wait(30)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(network_backend, "_LOOKUP_QUEUE_TIMEOUT", 0.05)
    monkeypatch.setattr(network_backend, "_MAX_LOOKUPS", 1)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    resolver = Resolver()
    try:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(resolver.resolve("slow.test", 443), 0.05)
        lookup_org.set(uuid.uuid4())
        with pytest.raises(TooManyLookups):
            await resolver.resolve("good.test", 443)
    finally:
        over.set()
    [thread] = threads
    assert thread.daemon, "the process does not wait for it when it ends"
    await asyncio.to_thread(thread.join, 10)
    with pytest.raises(socket.gaierror):
        await resolver.resolve("good.test", 443)
    gc.collect()
    assert complaints == []
