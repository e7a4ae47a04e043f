"""The console: where operators see, understand and heal. Pages over the verbs of `control`, always live.

`install(api)` adds it to a service under `/console`. It may touch `control`, the facades of the applications,
and of `http` what lets a browser in; it knows no SQL.
"""

from duly.console.extras import Extras
from duly.console.site import install

__all__ = ["Extras", "install"]
