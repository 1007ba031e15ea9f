"""Becomes another program that the kernel kills once the starting process is gone; run as a script, never imported.

argv: PID of the starting process, number of the signal, then the command.  Standard library only, since it runs without
site-packages: it costs some 20 ms.  The signal comes when the *thread* that started this ends, so start it from a main
thread.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, number, *command = sys.argv[1:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != int(parent):  # it died before the request above: nobody would send the signal any more
        sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
