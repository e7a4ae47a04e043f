"""Parse and sum the samples of `/metrics`."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from duly.observability import exposition

Labels = tuple[tuple[str, str], ...]


def parse_samples(text: str) -> dict[tuple[str, Labels], float]:
    """Return every sample by its name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def current_samples() -> dict[tuple[str, Labels], float]:
    """Return the samples of this process."""
    return parse_samples(exposition.render().decode())


def sum_samples(samples: Mapping[tuple[str, Labels], float], name: str, /, **labels: str) -> float:
    """Return the sum of the samples with this name and these labels."""
    expected = labels.items()
    return sum(
        value
        for (sample_name, sample_labels), value in samples.items()
        if sample_name == name and expected <= dict(sample_labels).items()
    )
