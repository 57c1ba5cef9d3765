"""What `bench.gateway` needs: bodies, a provider that is quick, the proxies to compare, and a light client.

client (this process)  →  proxy (alone on its core)  →  upstream (a process of its own, on the client's core)
"""
