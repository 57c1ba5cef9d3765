"""Falling over: which of several targets is asked, when to ask the next one, and with which of several keys.

    failures    what went wrong with a target, if it is something that another target may do better
    breakers    which targets are worth asking now: closed, open for a while, half open for one probe
    health      in which order the targets of a route are asked for one conversation, and with which keys

Pure: time comes in as an argument. Each process has its own; the first choice for a conversation is the same in all.
Processes on a shared store tell each other of breakers that open and keys that are put aside (`adopt`, `on_change`).
"""
