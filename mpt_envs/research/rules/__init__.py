"""What a decision does, what it earns, and what is legal."""
