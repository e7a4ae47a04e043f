"""The HTTP API: one FastAPI application over the services of the features; it can be mounted into another.

Routes authenticate the request, call a service, and return its resources as JSON.
"""
