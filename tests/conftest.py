"""Set-up that all tests share: threads, no windows, and Ctrl-C."""

from __future__ import annotations

import os
import signal

# Several test processes share few cores: one thread each is the quickest for all of them. This has
# to happen before the first import of numpy, numba or torch, also in the processes tests start.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")

# A shell starts what it runs in the background with SIGINT ignored, and that is inherited: programs
# that tests start would never hear the Ctrl-C that the tests send them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
