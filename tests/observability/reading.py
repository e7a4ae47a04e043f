"""Read the values of `/metrics`."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from duly.observability import exposition

Labels = tuple[tuple[str, str], ...]


def told(text: str) -> dict[tuple[str, Labels], float]:
    """Every sample by its name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def here() -> dict[tuple[str, Labels], float]:
    """What this process has counted."""
    return told(exposition.render().decode())


def of(told: Mapping[tuple[str, Labels], float], name: str, /, **labels: str) -> float:
    """One number; several if not all labels are given, added up."""
    wanted = labels.items()
    return sum(
        value for (known, said), value in told.items() if known == name and wanted <= dict(said).items()
    )
