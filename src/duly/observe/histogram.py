"""A histogram that takes many values at once: a worker settles hundreds of jobs in one statement."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection

import prometheus_client


class Histogram(prometheus_client.Histogram):
    """The library's own, with one step for a whole batch: one addition a bucket, not two a value."""

    def observe_all(self, values: Collection[float]) -> None:
        """The same as `observe` for each of them."""
        if len(values) < 2:
            for value in values:
                self.observe(value)
            return
        bounds = self._upper_bounds
        self._sum.inc(sum(values))
        for bucket, count in Counter([bisect_left(bounds, value) for value in values]).items():
            self._buckets[bucket].inc(count)
