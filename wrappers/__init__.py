"""The bid-then-act game and everything that knows no domain."""
