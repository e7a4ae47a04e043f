"""Where the objects meet: settings become a database, a blob store and an application.

The only room that reads the settings; every other receives values. It meets all rooms below it, and decides
nothing but who is given what.
"""

from duly.wiring.application import Duly
from duly.wiring.ground import Place, open_ground

__all__ = ["Duly", "Place", "open_ground"]
