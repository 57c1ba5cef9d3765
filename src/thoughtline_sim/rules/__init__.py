"""What each provider refuses: the predicates of contracts.md §32, in its order, with its sentences.

A rule takes an exchange and gives a refusal or nothing. The tuples of rules stand in `thoughtline_sim.simulators`.
"""
