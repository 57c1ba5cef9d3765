"""What to remember of a response, and what to put back into a request.

Pure: it never fetches, it says what it needs.
"""
