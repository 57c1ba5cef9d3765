"""Recorded exchanges without anything secret in them, and what the engine makes of them: a bug report that reproduces.

taking     exchanges as they pass, held in memory           stand_ins, secrets   what stands for what may not be shown
scrubbing  a body or a stream without secrets               form                 the file: written and read
replaying  each exchange of a file through the library's engine, off the network
"""
