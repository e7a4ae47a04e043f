"""An embedded PostgreSQL for development: installed with pip, started on demand, shared, self-stopping.

`open_server()` returns a lease on the one server of a home directory; the server runs while any process
holds a lease, survives the kill of any of its processes, and stops when the last holder is gone.
Only the composition root and the tests import this package.
"""

from duly.embedded.directories import EmbeddedDatabaseError, prepare_home
from duly.embedded.server import EmbeddedServer, open_server

__all__ = ["EmbeddedDatabaseError", "EmbeddedServer", "open_server", "prepare_home"]
