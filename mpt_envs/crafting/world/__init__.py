"""What exists and how it is made."""
