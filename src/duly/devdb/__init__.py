"""An embedded PostgreSQL for development: installed with pip, started on demand, shared, self-stopping.

`open_server()` gives a lease on one server per home directory; the server runs while any process
holds a lease, survives the kill of any of its processes, and stops when the last holder is gone.
Nothing in the product imports this package except the wiring and the tests.
"""

from duly.devdb.errors import DevdbError
from duly.devdb.places import prepare_home
from duly.devdb.server import Server, open_server

__all__ = ["DevdbError", "Server", "open_server", "prepare_home"]
