"""The customer pages: submit a job, follow it, read its result.

HTML comes from templates; scripts load the data from the API. There is no build step.
"""

from duly.pages.routes import routes

__all__ = ["routes"]
