"""Notifications to people: by e-mail, in the product, by webhook or by other channels.

A row of `duly.notifications` says that a recipient is to be notified. The dispatcher takes due rows: in-app
notifications are delivered at once, webhooks go to the deliverer, all others become jobs. A notification is
never part of the job that it is about: that job has committed before.
"""
