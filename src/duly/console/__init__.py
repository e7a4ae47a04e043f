"""The operator's console: server-rendered pages under `/console` that update live.

`install(api)` adds it to a service. Pages call services of the features; they contain no SQL.
"""

from duly.console.extras import Extras
from duly.console.site import install

__all__ = ["Extras", "install"]
