"""``sync`` makes a copy equal to its source, by moving only what differs."""
