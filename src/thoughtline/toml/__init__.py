"""TOML documents: `lines` finds the line of each key, `tree` gives each value its place, `writing` writes values."""
