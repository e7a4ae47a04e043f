"""Notifications: people are told, in words of their own, by mail, in the product or by other channels.

A row of `duly.notifications` is the fact that somebody is to be told. A chore takes what is due: what is read
in the product is told by that, what goes to a webhook is handed to the deliverer, and for everything else
there is a job. None of it is part of the job that it tells of: that one has ended, and committed, before.
"""

from duly.notify.channels import Channel, Message
from duly.notify.delivery import JOB_TYPE, declare
from duly.notify.notifications import Notifications
from duly.notify.recipients import Recipient
from duly.notify.subscriptions import Subscriptions

__all__ = ["JOB_TYPE", "Channel", "Message", "Notifications", "Recipient", "Subscriptions", "declare"]
