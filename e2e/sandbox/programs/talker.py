# What `svc run --sandbox` runs at a terminal: it says what reaches it, and ends with 5 when a line says so.
import array
import errno
import fcntl
import os
import select
import signal
import sys
import termios

interrupts = 0


def say(*words):
    # Signals arrive at any moment: what print writes cannot be begun twice.
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def size():
    columns, rows = os.get_terminal_size()
    return f"{rows} {columns}"


def interrupted(*_):
    global interrupts
    interrupts += 1
    say("interrupt", interrupts)


def is_line_there():
    # Another program may have read the line that woke this one: the shell, before it continued it.
    count = array.array("i", [0])
    fcntl.ioctl(0, termios.FIONREAD, count)
    return count[0] > 0


signal.signal(signal.SIGINT, interrupted)
signal.signal(signal.SIGWINCH, lambda *_: say("resized", size()))
signal.signal(signal.SIGCONT, lambda *_: say("continued"))
# Python runs these functions between its own steps. A signal just before a wait would have to wait for the next line.
received, noted = os.pipe()
os.set_blocking(noted, False)
signal.set_wakeup_fd(noted)

try:
    fcntl.ioctl(0, termios.TIOCSTI, b"#")
    say("typed for the person")
except OSError as error:
    say("TIOCSTI", errno.errorcode[error.errno])
say("size", size())
while True:
    readable = select.select([0, received], [], [])[0]
    if received in readable:
        os.read(received, 64)
    if 0 not in readable or not is_line_there():
        continue
    for line in os.read(0, 4096).decode().splitlines():
        if line == "end":
            say("interrupts in all:", interrupts)
            sys.exit(5)
        say("got", line)
