# Tries to get out of a container. Its argument: JSON {"tcp": [[address, port]...], "udp": [[address, port]...],
# "unix": [name...], "names": [host...]}. Prints JSON: for each attempt "reached", or the error that stopped it.
import ctypes
import json
import os
import socket
import sys

wanted = json.loads(sys.argv[1])
results = {}
# Whatever answers is on this machine.
PATIENCE = 0.7


def attempt(name, action):
    try:
        said = action()
        results[name] = "reached" if said is None else said
    except Exception as error:  # every failure is a result
        results[name] = f"{type(error).__name__}: {error}"


def tcp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as one:
        one.settimeout(PATIENCE)
        one.connect((address, port))


def udp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.sendto(b"exfiltrated", (address, port))
    return "sent"


def abstract(name):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(PATIENCE)
        one.connect("\0" + name)


def look_up(name):
    return str(socket.getaddrinfo(name, 443))


def raw(family, kind, protocol):
    socket.socket(family, kind, protocol).close()


def vsock(cid):
    with socket.socket(socket.AF_VSOCK) as one:
        one.settimeout(PATIENCE)
        try:
            one.connect((cid, 1024))
        except PermissionError:
            raise
        except OSError as error:
            return f"a socket, then {error}"


def unshare(flags):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def interfaces():
    return " ".join(sorted(name for _, name in socket.if_nameindex()))


def routes():
    with open("/proc/net/route") as listed:
        return str(len(listed.readlines()) - 1)


def setns():
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/1/ns/net", os.O_RDONLY)
    if libc.setns(here, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


for address, port in wanted.get("tcp", []):
    attempt(f"tcp {address} {port}", lambda: tcp(address, port))
for address, port in wanted.get("udp", []):
    attempt(f"udp {address} {port}", lambda: udp(address, port))
for name in wanted.get("unix", []):
    attempt(f"unix {name}", lambda: abstract(name))
for name in wanted.get("names", []):
    attempt(f"name {name}", lambda: look_up(name))
attempt("raw packets", lambda: raw(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
attempt("raw ip", lambda: raw(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("vsock host", lambda: vsock(2))
attempt("new network namespace", lambda: unshare(0x40000000))
attempt("new user namespace", lambda: unshare(0x10000000))
attempt("network namespace of process 1", setns)
attempt("interfaces", interfaces)
attempt("routes", routes)
print(json.dumps(results))
