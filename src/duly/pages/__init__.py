"""The pages: have a job done, watch it, read its result. Small HTML; the rest comes by the routes of the API.

Nothing is built, and nothing is fetched from elsewhere: templates, texts, modules and styles are files here.
"""

from duly.pages.routes import routes

__all__ = ["routes"]
