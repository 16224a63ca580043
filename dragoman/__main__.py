"""`python -m dragoman` is the `dragoman` command; torchrun starts workers this way."""

import signal

# Ctrl-C while modules load ends the process without a traceback; `main` hears it itself.
if (before := signal.getsignal(signal.SIGINT)) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from dragoman.cli import main  # noqa: E402

signal.signal(signal.SIGINT, before)

if __name__ == "__main__":
    main()
