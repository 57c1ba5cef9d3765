"""How simulators decode and encode: one module per wire format, each with rows of `WireFormat`.

They are independent of `thoughtline.formats` on purpose: the product is tested against the simulators, and two readers
that share code share mistakes. The tests compare them: every answer written here is decoded there.
"""
