"""What everything else is made of: items, turns, events, records, errors. Plain values, no input or output."""
