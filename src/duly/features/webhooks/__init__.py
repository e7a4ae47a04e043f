"""Webhooks: orgs are told of the events of their jobs, over HTTP, signed, and in order for each job.

The relay writes down what is to be told; here it is sent, and the endpoints are kept that it is sent to. What
an org names as its endpoint is a stranger: slow, wrong, or a place where nobody should be sent.
"""
