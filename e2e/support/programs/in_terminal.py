# Runs a command on a terminal of its own and plays its user. Arguments: a JSON list of steps, the command.
# A step: {"expect": text} waits for it, {"type": text}, {"resize": [rows, columns]}, {"signal": name} to the command.
# Prints JSON: what the terminal showed, and how the command ended.
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

steps, command = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)


def resize(rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read(seconds):
    if not select.select([terminal], [], [], seconds)[0]:
        return b""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return None


shown, at, missed, deadline = b"", 0, None, time.time() + 540
resize(24, 80)
for step in steps:
    if "resize" in step:
        resize(*step["resize"])
    if "type" in step:
        os.write(terminal, step["type"].encode())
    if "signal" in step:
        os.kill(pid, getattr(signal, step["signal"]))
    wanted = step.get("expect", "").encode()
    while shown.find(wanted, at) < 0:
        more = read(1)
        if more is None or time.time() > deadline:
            missed = step["expect"]
            break
        shown += more
    if missed is not None:
        break
    at = shown.find(wanted, at) + len(wanted)
while time.time() < deadline:
    more = read(1)
    if more is None:
        break
    shown += more
if missed is not None:
    # The end of the terminal ends what runs on it. A shell that is used by hand ignores SIGTERM.
    os.close(terminal)
    os.kill(pid, signal.SIGKILL)
_, status = os.waitpid(pid, 0)
ended = {"code": os.waitstatus_to_exitcode(status), "missed": missed, "shown": shown.decode(errors="replace")}
print(json.dumps(ended))
