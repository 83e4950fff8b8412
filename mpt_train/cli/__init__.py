"""The commands of the program `mpt` that belong to the trainer: train, eval, play and two lists.

Each module has a ``main(arguments, prog) -> exit code``. They import torch only once there is work
for it, so that help and most complaints are quick.
"""
