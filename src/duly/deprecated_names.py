"""Names of the previous release, which work for one more release with a warning."""

from __future__ import annotations

import warnings
from typing import Any


class DeprecatedName:
    """An attribute by its former name: `story = DeprecatedName("full_detail")` in the body of the class."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __set_name__(self, owner: type, former: str) -> None:
        self._message = f"{owner.__name__}.{former} is deprecated: use {self._name}"

    def __get__(self, instance: object, owner: type) -> Any:
        """Return the attribute by its current name."""
        if instance is None:
            return self
        warnings.warn(self._message, DeprecationWarning, stacklevel=2)
        return getattr(instance, self._name)
