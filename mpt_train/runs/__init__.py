"""What a run leaves on the disk: its folder, checkpoints, log; and how it is stopped."""
