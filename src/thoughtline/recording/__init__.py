"""Recorded exchanges without secrets, and replaying them in the engine: bug reports that reproduce.

taking     records exchanges as they pass, in memory   stand_ins, secrets   replacements for secrets
scrubbing  removes secrets from bodies and streams     form                 the file: written and read
replaying  runs each exchange of a file through the library's engine, offline
"""
