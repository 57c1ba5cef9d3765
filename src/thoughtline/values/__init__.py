"""The values that everything else uses: items, turns, events, records, errors. No input or output."""
