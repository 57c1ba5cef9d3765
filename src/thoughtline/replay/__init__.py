"""Decides what to remember of a response, and what to put back into a request.

Pure: it fetches nothing, it only says which keys it needs.
"""
