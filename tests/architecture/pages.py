"""Documentation generated from the code: `python -m tests.architecture.pages` writes it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from duly import Duly
from duly.apps.documents.engines import CODES, WARNINGS
from duly.cli.exit_codes import MEANINGS
from duly.cli.program import built
from duly.core import errors
from duly.core.policy import Retention
from duly.core.states import state_diagram
from duly.features.doctor.capacity import MAX_DISK_USE, Load, compute_need, retention_days, whole_cores
from duly.features.doctor.capacity_report import GIB
from duly.features.doctor.reference import read_reference
from duly.features.doctor.server_checks import format_bytes
from duly.features.metrics import service as database_metrics
from duly.http import problems
from duly.http.problems import status_of
from duly.http.rate_limit import TooManyRequests
from duly.observability import metrics
from duly.settings import Settings

ROOT = Path(__file__).parents[2]


def states() -> str:
    return f"```mermaid\n{state_diagram()}\n```"


def settings() -> str:
    lines = ["| setting | variable | default | meaning |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default_value = field.default
        if isinstance(default_value, dict):
            default_value = ", ".join(f"{key}={value}" for key, value in default_value.items())
        default = "" if default_value is None else f"`{default_value}`"
        lines.append(f"| `{name}` | `DULY_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(lines)


def tree() -> str:
    text = (errors.__doc__ or "").split("\n\n", 1)[1].strip()
    return f"```text\n{text}\n```"


def commands() -> dict[str, Any]:
    """Return every command of the program by its words."""
    found: dict[str, Any] = {}
    for name, command in built().commands.items():
        below = getattr(command, "commands", None)
        found |= {f"{name} {word}": one for word, one in below.items()} if below else {name: command}
    return {path: command for path, command in found.items() if not command.hidden}


def cli() -> str:
    lines = ["| command | what it does |", "|---|---|"]
    for path, command in commands().items():
        first = command.help.strip().partition("\n")[0]
        arguments = [p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument"]
        lines.append(f"| `{' '.join(['duly', path, *arguments])}` | {first} |")
    return "\n".join(lines)


def exit_codes() -> str:
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


def routes() -> str:
    """Return every route of the service, in the order of the OpenAPI document."""
    app = Duly()
    app.include_analyze()
    app.include_documents()
    lines = ["| route | what it does |", "|---|---|"]
    for path, operations in app.http_app().openapi()["paths"].items():
        for method, operation in operations.items():
            default_value = operation["description"].partition("\n")[0]
            lines.append(f"| `{method.upper()} {path}` | {default_value} |")
    return "\n".join(lines)


def problem_codes() -> str:
    """Return every problem code of the service."""
    found = {code: status for status, code in problems.HTTP_CODES.items()}
    kinds = {kind.code: status_of(kind("")) for kind in _kinds(errors.DulyError)}
    found |= {code: status for code, status in kinds.items() if status != 500}
    found |= {"request.invalid": 422, TooManyRequests.code: 429, "duly.error": 500}
    rows = [f"| `{code}` | {status} | {problems.TITLES[status]} |" for code, status in sorted(found.items())]
    return "\n".join(["| code | status | |", "|---|---|---|", *rows])


def _kinds(kind: type[errors.DulyError]) -> list[type[errors.DulyError]]:
    below = [found for inner in kind.__subclasses__() for found in _kinds(inner)]
    ours = kind.__module__.startswith(("duly.core", "duly.apps.documents"))
    return [kind, *below] if ours else below


def process_metrics() -> str:
    """Return every metric that processes count."""
    found = [metric for metric in vars(metrics).values() if isinstance(metric, MetricWrapperBase)]
    rows = []
    for metric in found:
        [description] = metric.describe()
        name = f"{description.name}_total" if description.type == "counter" else description.name
        rows.append(_metric(name, description.type, metric._labelnames, description.documentation))
    return _metrics(rows)


def scraped_metrics() -> str:
    """Return every metric that is read from the database."""
    return _metrics([_metric(one.name, "gauge", one.labels, one.help) for one in database_metrics.ALL])


def _metric(name: str, kind: str, labels: Sequence[str], meaning: str) -> str:
    return f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |"


def _metrics(rows: list[str]) -> str:
    return "\n".join(["| metric | kind | labels | meaning |", "|---|---|---|---|", *rows])


def extraction_codes() -> str:
    """Return every code that an extraction can end with."""
    return _codes(CODES)


def extraction_warnings() -> str:
    """Return every warning of an extraction."""
    return _codes(WARNINGS)


def _codes(codes: Mapping[str, str]) -> str:
    return "\n".join(["| code | meaning |", "|---|---|", *(f"| `{one}` | {codes[one]} |" for one in codes)])


def capacity_loads() -> str:
    """Return the machine that each load needs, by the reference figures."""
    reference, month = read_reference(), timedelta(days=30)
    variants = (reference.batches, reference.one_by_one)
    lines = [
        "| jobs a day | per second, busiest hour | server cores, batches | single | worker cores, batches "
        "| single | WAL a day, batches | single | disk | disk, jobs kept for 30 days |",
        "|---" * 10 + "|",
    ]
    for jobs in (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000):
        load = Load(jobs)
        needs = [compute_need(load, cost, retention_days(Retention())) for cost in variants]
        short = compute_need(load, variants[0], retention_days(Retention(jobs=month, final_results=month)))
        cells = [
            f"{jobs:,}",
            f"{load.jobs_per_second:,.1f}",
            *(str(whole_cores(need.server_cores)) for need in needs),
            *(str(whole_cores(need.worker_cores)) for need in needs),
            *(format_bytes(need.wal_bytes_per_day) for need in needs),
            *(format_bytes((need.disk_bytes + GIB) / MAX_DISK_USE) for need in (needs[0], short)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def capacity_reference() -> str:
    """Return the reference figures of a job."""
    reference = read_reference()
    batches, single = reference.batches, reference.one_by_one
    lines = [
        f"On {reference.machine}, for one job:\n",
        "| | batches | single |",
        "|---|---|---|",
        f"| CPU time of the server, µs | {batches.server_us:,.0f} | {single.server_us:,.0f} |",
        f"| CPU time of the worker, µs | {batches.worker_us:,.0f} | {single.worker_us:,.0f} |",
        f"| WAL, bytes | {batches.wal_bytes:,.0f} | {single.wal_bytes:,.0f} |",
        "",
        "| on disk | bytes of a job | of them indexes | days kept by default |",
        "|---|---|---|---|",
    ]
    for group, days in retention_days(Retention()).items():
        if size := batches.disk.get(group):
            lines.append(f"| {group} | {size.all:,.0f} | {size.indexes:,.0f} | {days:g} |")
    return "\n".join(lines)


def layers() -> str:
    """Return the import rules as a diagram: an arrow points to what a package may import."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = [one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    rows = [re.split(r" [|:] ", layer.replace("duly.", "")) for layer in contract["layers"]]
    lines = ["flowchart TD"]
    for number, row in enumerate(rows):
        lines.append(f'  layer{number}["{", ".join(row)}"]')
    lines += [f"  layer{number} --> layer{number + 1}" for number in range(len(rows) - 1)]
    return "\n".join(["```mermaid", *lines, "```"])


PAGES = {
    "CONTRIBUTING.md": {"layers": layers},
    "docs/guides/documents.md": {"codes": extraction_codes, "warnings": extraction_warnings},
    "docs/concepts/states.md": {"states": states},
    "docs/operate/capacity.md": {"loads": capacity_loads, "reference": capacity_reference},
    "docs/operate/metrics.md": {"counted": process_metrics, "asked": scraped_metrics},
    "docs/reference/settings.md": {"settings": settings},
    "docs/reference/errors.md": {"errors": tree},
    "docs/reference/cli.md": {"commands": cli, "exits": exit_codes},
    "docs/reference/http.md": {"routes": routes, "problems": problem_codes},
}


def expected(page: str) -> str:
    """Return the page as it should be."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, make in PAGES[page].items():
        block = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, found = block.subn(lambda m, make=make: f"{m[1]}{make()}\n{m[2]}", text)
        assert found == 1, f"{page} has no place for {name}"
    return text


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(expected(page), encoding="utf-8")
