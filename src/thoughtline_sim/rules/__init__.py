"""What each provider refuses: predicates, in the order it asks them, with its sentences.

A rule takes an exchange and gives a refusal or nothing. The tuples of rules stand in `thoughtline_sim.simulators`.
"""
