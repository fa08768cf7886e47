#!/usr/bin/python3
"""Replaces itself by the program that $CHROMIUM names, which cannot open a netlink socket (socket(2) fails with EAFNOSUPPORT).

Chromium listens there for changes of the machine's interfaces, and at each one gives up the connections that it is making
(ERR_NETWORK_CHANGED). Test engines add and remove interfaces all the time.
"""

import os
import sys

AF_NETLINK = 16
EAFNOSUPPORT = 97
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
# For each machine: its AUDIT_ARCH and its number of socket(2).
MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}


def deny_netlink(arch, socket):
    import ctypes
    import struct

    # See bpf(4) and seccomp(2): the offsets are those of struct seccomp_data.
    load, equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | EAFNOSUPPORT
    program = [
        (load, 0, 0, 4),
        (equal, 0, 5, arch),
        (load, 0, 0, 0),
        (equal, 0, 3, socket),
        (load, 0, 0, 16),
        (equal, 0, 1, AF_NETLINK),
        (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
    ]

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    code = b"".join(struct.pack("HBBI", *each) for each in program)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    pointer = ctypes.byref(Filter(len(program), code))
    if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, pointer):
        sys.exit("no seccomp filter: " + os.strerror(ctypes.get_errno()))


program = os.environ["CHROMIUM"]
if os.uname().machine in MACHINES:
    deny_netlink(*MACHINES[os.uname().machine])
os.execvp(program, [program, *sys.argv[1:]])
