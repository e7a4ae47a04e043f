"""What to run and where: settled by the first user, carried to the supervisor on its command line."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Plan:
    """One server: its home, its socket directory, the shelter, the programs and the settings."""

    home: Path
    socket_dir: Path
    shelter: Path
    bindir: Path
    version: str
    options: dict[str, str]

    @property
    def name(self) -> str:
        """Name the data directory by major version, for no other major can read it."""
        return f"pg{self.version.partition('.')[0]}"

    @property
    def log(self) -> Path:
        """Where the server and its supervisor write."""
        return self.home / f"{self.name}.log"

    @property
    def users_lock(self) -> Path:
        """Held shared by every process that uses the server."""
        return self.home / "users.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held exclusively by the supervisor for its lifetime."""
        return self.home / "supervisor.lock"

    def dumps(self) -> str:
        """Write the plan as one command line argument."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def loads(cls, text: str) -> "Plan":
        """Read what `dumps` wrote."""
        fields = json.loads(text)
        paths = {name: Path(fields[name]) for name in ("home", "socket_dir", "shelter", "bindir")}
        return cls(**{**fields, **paths})
