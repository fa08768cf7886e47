# What `svc run --sandbox` runs at a terminal: it says what reaches it, and ends with 5 when a line says so.
import errno
import fcntl
import os
import signal
import sys
import termios


def say(*words):
    # Signals arrive at any moment: what print writes cannot be begun twice.
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def size():
    columns, rows = os.get_terminal_size()
    return f"{rows} {columns}"


interrupts = 0


def interrupted(*_):
    global interrupts
    interrupts += 1
    say("interrupt", interrupts)


signal.signal(signal.SIGINT, interrupted)
signal.signal(signal.SIGWINCH, lambda *_: say("resized", size()))
signal.signal(signal.SIGCONT, lambda *_: say("continued"))
try:
    fcntl.ioctl(0, termios.TIOCSTI, b"#")
    say("typed for the person")
except OSError as error:
    say("TIOCSTI", errno.errorcode[error.errno])
say("size", size())
for line in sys.stdin:
    if line.strip() == "end":
        say("interrupts in all:", interrupts)
        sys.exit(5)
    say("got", line.strip())
