"""The results as lines, Markdown and charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from figures.chart import line_chart, short
from figures.numbers import pick

from sustained.sides import BATCH, SLOTS
from sustained.verdict import SETTLING, Finding
from sustained.watch import GROWING, HOT

Sample = dict[str, Any]
_HEAD = """# Enqueue and drain, sustained

One process enqueues {batch} jobs at a time, one works with {slots} slots; {orgs} orgs, {minutes:g} minutes
on {server} with 1 GB of shared buffers and 16 GB of WAL between checkpoints: {jobs:,} jobs, {rate:,.0f} per
second. Verdict after a warm-up of {settling:.0f} s: **{verdict}**.

| | mean | drift | allowed | flat |
|---|---|---|---|---|"""
_COLUMNS = (
    *("s", "jobs/s", "backlog", "claim p50 / p99 ms", "finish p50 / p99 ms", "WAL bytes per job"),
    *("ready", "dead", "claims", "dead"),
)


def as_line(sample: Sample) -> str:
    """Return one interval as text."""
    claim, finish = sample["claim_ms"], sample["finish_ms"]
    hot = "  ".join(
        f"{name} {short(t['bytes'])}B/{short(t['dead'])} dead/{t['vacuums']} av"
        + (f"/{t['heap_only']:.0%} heap-only" if name in ("workers", "job_states") else "")
        for name, t in sample["tables"].items()
        if name in (*HOT, "job_states")
    )
    grown = " ".join(f"{name} {sample['bytes_a_job'][name]:.0f}" for name in GROWING)
    return (
        f"{sample['seconds']:5.0f} s {sample['rate']:7,.0f} jobs/s, backlog {sample['backlog']:6,}, "
        f"claim {claim['p50']:.1f}/{claim['p99']:.1f} ms, finish {finish['p50']:.1f}/{finish['p99']:.1f} ms, "
        f"{sample['wal_a_job']:,.0f} B of WAL per job\n        {hot}\n        bytes per job: {grown}"
    )


def as_verdict(findings: Sequence[Finding], flat: bool | None) -> str:
    """Return what grew, and whether that is too much."""
    if flat is None:
        return f"no verdict: too little was seen after the first {SETTLING:.0f} s"
    lines = [
        f"  {'flat' if f.flat else 'GROWS':<6} {f.name:<28} mean {short(f.mean):>8}, drift {f.drift:+7.1%}"
        f" (at most {f.allowed:.0%})"
        for f in findings
    ]
    return "\n".join(["flat" if flat else "NOT FLAT", *lines])


def write(figures: dict[str, Any], findings: Sequence[Finding], folder: Path) -> None:
    """Write the page and its charts."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts(figures["samples"]).items():
        (folder / f"sustained-{name}.svg").write_text(chart, encoding="utf-8")
    (folder / "sustained.md").write_text(as_markdown(figures, findings), encoding="utf-8")


def charts(samples: Sequence[Sample]) -> dict[str, str]:
    """Return charts of all figures over time."""

    def line(*path: str) -> list[tuple[float, float]]:
        return [(sample["seconds"], pick(sample, *path)) for sample in samples]

    def chart(title: str, y: str, series: dict[str, list[tuple[float, float]]]) -> str:
        return line_chart(title, series, x="seconds", y=y)

    sizes = {name: line("tables", name, "bytes") for name in HOT}
    dead = {name: line("tables", name, "dead") for name in (*HOT, "job_states")}
    spans = {
        f"{word} {name}": line(f"{word}_ms", name) for word in ("claim", "finish") for name in ("p50", "p99")
    }
    return {
        "rate": chart(
            "Jobs a second, and the backlog", "", {"jobs/s": line("rate"), "backlog": line("backlog")}
        ),
        "sizes": chart("Tables whose rows come and go", "bytes", sizes),
        "dead": chart("Dead rows", "rows", dead),
        "latency": chart("Claims and finishes", "ms", spans),
        "bytes": chart("Bytes of a job", "bytes", {name: line("bytes_a_job", name) for name in GROWING}),
    }


def as_markdown(figures: dict[str, Any], findings: Sequence[Finding]) -> str:
    """Return a page: the verdict, the charts, every interval."""
    samples, verdict = figures["samples"], {True: "flat", False: "not flat", None: "none, too short"}
    jobs, verdict_text = samples[-1]["finished"], verdict[figures["flat"]]
    head = _HEAD.format(
        **figures, jobs=jobs, verdict=verdict_text, settling=SETTLING, batch=BATCH, slots=SLOTS
    )
    parts = [
        head,
        *(_finding(finding) for finding in findings),
        "",
        *(f"![{name}](sustained-{name}.svg)\n" for name in charts(samples[:1])),
        f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}",
        *(_row(sample) for sample in samples),
        "",
    ]
    return "\n".join(parts)


def _finding(found: Finding) -> str:
    cells = [
        short(found.mean),
        f"{found.drift:+.1%}",
        f"{found.allowed:.0%}",
        "yes" if found.flat else "**no**",
    ]
    return f"| {found.name} | {' | '.join(cells)} |"


def _row(sample: Sample) -> str:
    ready, claims = sample["tables"]["ready"], sample["tables"]["claims"]
    cells = [
        f"{sample['seconds']:.0f}",
        f"{sample['rate']:,.0f}",
        f"{sample['backlog']:,}",
        *(f"{sample[verb]['p50']:.1f} / {sample[verb]['p99']:.1f}" for verb in ("claim_ms", "finish_ms")),
        f"{sample['wal_a_job']:,.0f}",
        *(part for t in (ready, claims) for part in (f"{short(t['bytes'])}B", f"{t['dead']:,}")),
    ]
    return f"| {' | '.join(cells)} |"
