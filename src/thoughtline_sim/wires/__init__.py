"""How simulators read and write: one module per wire format, each giving rows of `WireFormat`.

They are written apart from `thoughtline.formats` on purpose: a simulator is what the product is tested against, and two
readers that share code share mistakes. The tests hold them together: every answer written here is read there.
"""
