"""TOML documents: `lines` finds the line of each key, `tree` adds its position to each value,
`writing` writes values.
"""
