"""The rules of each provider: predicates, in the provider's order, with its error messages.

A rule gets an exchange and returns an error or nothing. The tuples of rules are in `thoughtline_sim.simulators`.
"""
