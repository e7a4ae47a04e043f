"""Where a worker finds the database."""

from __future__ import annotations

from duly.worker.messages import OpenGround


class Places:
    """For work, for listening, and for its isolated processes."""

    def __init__(
        self,
        url: str,
        listen_url: str,
        open_ground: OpenGround,
        *,
        open_engine: OpenGround | None = None,
        direct: bool = False,
    ) -> None:
        self.url = url
        self.listen_url = listen_url
        self.open_ground = open_ground
        self.open_engine = open_engine or open_ground
        """The ground of the worker itself, on which no handler stands."""
        self.direct = direct
        """Whether `url` leads to the database itself, not to a pooler."""
