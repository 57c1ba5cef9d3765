"""Where a request goes, and whose it is.

`catalogue` has the providers as they are asked, `addresses` builds the URL, `outgoing` reads a URL back into a provider
and a format, `credentials` finds the caller's key in the headers.
"""
