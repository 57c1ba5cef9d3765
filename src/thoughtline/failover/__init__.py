"""Failover: which of several targets to try, when to try the next one, and with which of several keys.

    failures    what went wrong with a target, if another target may do better
    breakers    which targets to try now: closed, open for a while, half open for one probe
    health      the order in which a conversation tries the targets of a route, and the keys

Pure: time comes in as an argument. Each process has its own; the first choice for a conversation is the same in all.
Processes on a shared store exchange opened breakers and suspended keys (`adopt`, `on_change`).
"""
