"""One training loop for market-based post-training and its baselines."""
