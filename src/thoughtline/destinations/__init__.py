"""Where a request goes, and whose it is.

`catalogue` has the providers as they are asked, `addresses` builds the URL, `request_url` reads a URL back into a
provider and a format, `credentials` finds the caller's key in the headers.
"""
