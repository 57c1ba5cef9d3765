"""Digests of every body that passes the gateway, so that two checkouts can be compared.

    servers.py      the gateway as its own process, and upstreams that keep what they are sent
    clients.py      a client of each wire format, which reads streams by itself
    recorded.py     real conversations, their answers played back
    simulated.py    dialogues of every client format with every simulator
    __main__.py     the command

Everything goes over sockets, and nothing of the product is imported but the simulators.
"""
