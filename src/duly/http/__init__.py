"""The HTTP service: one FastAPI application, thin over control, that can be mounted into another.

Routes turn requests into callers and calls, and what comes back into JSON; what it means and what is written
is decided below. They may touch analyze, control, the client and the model.
"""
