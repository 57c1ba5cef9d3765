"""What is wrong with an installation, and how to mend it.

settings ─▶ store, keys ─▶ exposure
        ├─▶ each upstream, with its keys ─▶ clock
        └─▶ the port                                ──▶ `Check`s: ok, warn or fail, each with a remedy
"""
