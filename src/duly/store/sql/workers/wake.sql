-- Purpose: tell listening workers that something is runnable. A hint, coalesced by the sender.
select pg_notify('duly_ready', '')
