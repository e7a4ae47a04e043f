"""Settles who serves which directory with which programs, and makes the directories ready."""

import os
import shutil
from pathlib import Path

from duly.devdb.account import Account, enter_namespace, is_refused_by_postgres, nobody, owner_of
from duly.devdb.cluster import Cluster
from duly.devdb.errors import DevdbError
from duly.devdb.places import make_private, open_to_all
from duly.devdb.plan import Plan


def prepare_cluster(plan: Plan) -> Cluster:
    """Return the cluster of the plan, created and ready to start."""
    account, data = _settle(plan)
    if plan.shelter in (data.parent, plan.socket_dir.parent):
        make_private(plan.shelter)
    _make_socket_dir(plan.socket_dir, account)
    cluster = Cluster(data, _reachable(plan, account), plan.socket_dir, account, plan.options)
    cluster.create()
    cluster.check()
    return cluster


def _settle(plan: Plan) -> tuple[Account, Path]:
    """Choose the account and the data directory, changing this process into a namespace if that serves."""
    inside, outside = plan.home / plan.name, plan.shelter / plan.name
    if not is_refused_by_postgres():
        return Account(), inside
    if os.geteuid() == 0:
        # What an ordinary account began, it goes on with: nothing ever changes its owner.
        for existing, data in ((plan.home, inside), (inside, inside), (outside, outside)):
            if owner := owner_of(existing):
                return owner, data
    if enter_namespace(lambda: _is_usable(plan)):
        return Account(), inside
    if os.geteuid() != 0:
        raise DevdbError(f"user {os.geteuid()} is unknown to this system: add it to /etc/passwd")
    return nobody(), inside if open_to_all(plan.home) else outside


def _is_usable(plan: Plan) -> bool:
    return os.access(plan.home, os.W_OK | os.X_OK) and os.access(plan.bindir / "postgres", os.R_OK | os.X_OK)


def _make_socket_dir(path: Path, account: Account) -> None:
    """Make the directory that only we can enter: it is what makes trust authentication safe."""
    path.mkdir(0o700, exist_ok=True)
    found = path.lstat()
    if path.is_symlink() or found.st_uid not in (os.geteuid(), account.uid) or found.st_mode & 0o077:
        raise DevdbError(f"{path} is not a private directory of this user: remove it")
    account.give(path)


def _reachable(plan: Plan, account: Account) -> Path:
    """Return the programs' directory, or that of a copy where the account can execute them."""
    if account.uid is None or open_to_all(plan.bindir / "postgres"):
        return plan.bindir
    make_private(plan.shelter)
    install = plan.bindir.parent
    packages = install.parents[1]
    copy = plan.shelter / f"copy-{plan.version}"
    if not copy.exists():
        side = copy.with_name(f"{copy.name}.{os.getpid()}")
        unneeded = shutil.ignore_patterns("include", "doc", "*.a")
        shutil.copytree(install, side / install.relative_to(packages), symlinks=True, ignore=unneeded)
        # The wheel's programs look for their libraries beside the package.
        libraries = packages / f"{install.parent.name}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, side / libraries.name)
        side.rename(copy)
    return copy / plan.bindir.relative_to(packages)
