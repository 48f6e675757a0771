"""Planning: what prose asks for, given the capabilities' contracts, what was said, and the live ledger."""
