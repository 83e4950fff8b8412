"""What agents observe and read, what they may answer, and what people see."""
