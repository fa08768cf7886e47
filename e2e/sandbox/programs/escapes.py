"""Tries to get out of a sandbox in many ways, and prints what became of each as JSON: {name: {"out": bool, "why": text}}.

Argument: a JSON file that says where a few things outside are. Nothing is changed outside besides in the folders that it names.
Where the way out depends on the machine, the table says why it may be closed outside of a sandbox too.
"""

import ctypes
import errno
import fcntl
import http.client
import json
import mmap
import os
import platform
import pty
import signal
import socket
import sys

T = json.load(open(sys.argv[1]))
LIBC = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
HOME, PROJECT = T["home"], T["project"]
AS_ROOT = "only root may"
ATTEMPTS = []


def attempt(name, unless=None):
    def add(function):
        ATTEMPTS.append((name, function, unless))
        return function

    return add


def call(x64, arm64, *args):
    """A system call by its number; raises its error."""
    number = arm64 if ARM else x64
    ctypes.set_errno(0)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = LIBC.syscall(ctypes.c_long(number), *wide)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def in_child(work):
    """Runs work in a child of its own; true if it ends well."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno if 0 < (error.errno or 0) < 128 else 1)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        raise OSError(errno.EPERM, f"ended by signal {os.WTERMSIG(status)}")
    code = os.WEXITSTATUS(status)
    if code:
        raise OSError(code, os.strerror(code))
    return True


def talks(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as to:
        to.settimeout(2)
        to.connect(address)
        if kind == socket.SOCK_DGRAM:
            to.send(b"hello")
        return to.recv(16) == b"outside"


def reads(path):
    with open(path) as file:
        return T["secret"] in file.read()


def writes(path):
    with open(path, "w") as file:
        file.write("out\n")
    os.unlink(path)
    return True


def opens(path, flags=os.O_WRONLY):
    os.close(os.open(path, flags))
    return True


def makes(family, kind=socket.SOCK_RAW, protocol=0):
    socket.socket(family, kind, protocol).close()
    return True


# The network.
attempt("TCP to a port of the machine")(lambda: talks(socket.AF_INET, ("127.0.0.1", T["tcp"])))
attempt("UDP to a port of the machine")(lambda: talks(socket.AF_INET, ("127.0.0.1", T["udp"]), socket.SOCK_DGRAM))
attempt("IPv6 to a port of the machine", "has no IPv6")(lambda: talks(socket.AF_INET6, ("::1", T["tcp6"])))
attempt("an abstract socket of the machine")(lambda: talks(socket.AF_UNIX, "\0" + T["abstract"]))
attempt("a socket of a container engine")(lambda: talks(socket.AF_UNIX, T["docker"]))
attempt("the D-Bus of the session")(lambda: talks(socket.AF_UNIX, T["bus"]))
attempt("the socket of another session")(lambda: talks(socket.AF_UNIX, T["other"]))


def asks(method, path, headers=()):
    """Whether the API of the session's socket does it, with the session's own token."""
    host, port = os.environ["SVC_URL"].removeprefix("http://").split(":")
    to = http.client.HTTPConnection(host, int(port), timeout=60)
    own = {"authorization": "Bearer " + os.environ["SVC_TOKEN"], "content-type": "application/json"}
    to.request(method, path, b"{}", {**own, **dict(headers)})
    return to.getresponse().status < 400


NO_SOCKET = "there is no session's socket"
SERVER = "/v1/mcp/servers/mcp_1"
for method, path, what in (
    ("GET", "/v1/mcp/servers", "the commands of MCP servers"),
    ("GET", "/v1/mcp/gateway", "what the gateway is told"),
    ("POST", SERVER + "/consent", "a consent to an MCP server"),
    ("DELETE", SERVER + "/consent", "the end of a consent"),
    ("POST", SERVER + "/hosts", "more hosts for an MCP server"),
    ("POST", SERVER + "/release", "the credentials of an MCP server"),
    ("GET", "/v1/mcp/logs/mcp_1", "what an MCP server wrote"),
    ("POST", "/v1/mcp/tools", "a report of tools"),
    ("POST", "/v1/mcp/approvals", "an approval of a tool"),
    ("GET", "/v1/sandbox-proxy/sessions", "the list of sessions"),
    ("POST", "/v1/sandbox-proxy/sessions", "a session of its own"),
    ("POST", "/v1/sandbox-proxy/unsealed", "a credential in plaintext"),
    ("GET", "/metrics", "the counts of all sessions"),
):
    attempt(what + " by the session's socket", NO_SOCKET)(lambda m=method, p=path: asks(m, p))
attempt("the session's API under another name", NO_SOCKET)(lambda: asks("GET", "/v1/health", {"host": "evil.example"}))


def routed(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
        to.connect((address, port))
    return True


attempt("a route to a public address", "has no route")(lambda: routed("192.0.2.1", 443))
attempt("a route to a name server", "has no route")(lambda: routed("192.0.2.53", 53))
attempt("a route to the metadata address", "has no route")(lambda: routed("169.254.169.254", 80))
attempt("an interface with a route", "has none")(lambda: sum(1 for _ in open("/proc/net/route")) > 1)
attempt("raw IP", AS_ROOT)(lambda: makes(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packets", AS_ROOT)(lambda: makes(socket.AF_PACKET, socket.SOCK_RAW))
attempt("the hypervisor's sockets", "has none")(lambda: makes(socket.AF_VSOCK, socket.SOCK_STREAM))
attempt("the kernel's cipher sockets", "has none")(lambda: makes(38, socket.SOCK_SEQPACKET))
attempt("Bluetooth", "has none")(lambda: makes(31, socket.SOCK_RAW, 1))
attempt("netlink of the firewall")(lambda: makes(socket.AF_NETLINK, socket.SOCK_RAW, 12))
attempt("netlink of devices")(lambda: makes(socket.AF_NETLINK, socket.SOCK_RAW, 15))

# Files.
attempt("an SSH key")(lambda: reads(f"{HOME}/.ssh/id_ed25519"))
attempt("a file of the home")(lambda: reads(f"{HOME}/notes.txt"))
attempt("another agent's login")(lambda: reads(f"{HOME}/.codex/auth.json"))
attempt("a keyring")(lambda: reads(f"{HOME}/.local/share/keyrings/login.keyring"))
attempt("the state directory of svc")(lambda: reads(T["state"]))
attempt("a file in /tmp")(lambda: reads(T["temporary"]))
attempt("shared memory by its file")(lambda: reads(T["shm"]))
attempt("another project")(lambda: reads(T["neighbour"]))
attempt("a key by a link in the project")(lambda: reads(f"{PROJECT}/link"))
attempt("the list of passwords", AS_ROOT)(lambda: opens("/etc/shadow", os.O_RDONLY) and len(open("/etc/shadow").read()) > 0)


@attempt("a key by a hard link")
def hard_link():
    os.link(f"{HOME}/.ssh/id_ed25519", f"{PROJECT}/hard")
    os.unlink(f"{PROJECT}/hard")
    return True


@attempt("a descriptor that was open before")
def inherited():
    for number in range(3, 64):
        try:
            os.lseek(number, 0, os.SEEK_SET)
            if T["secret"].encode() in os.read(number, 4096):
                return True
        except OSError:
            pass
    return False


attempt("writing to /usr", AS_ROOT)(lambda: writes("/usr/svc-escape"))
attempt("writing to /etc", AS_ROOT)(lambda: writes("/etc/svc-escape"))
attempt("how the kernel handles core dumps", AS_ROOT)(lambda: opens("/proc/sys/kernel/core_pattern"))


@attempt("any other setting of the kernel", AS_ROOT)
def settings():
    for folder, folders, files in os.walk("/proc"):
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        # An engine covers some with /dev/null.
        found = [name for name in files if os.path.isfile(f"{folder}/{name}") and os.access(f"{folder}/{name}", os.W_OK)]
        # Everyone may write to these, and a process changes only its own part.
        if [name for name in found if name not in ("pressure", "cpu", "io", "memory", "irq", "timer_list")]:
            return True
    return False


attempt("the kernel's magic keys", "has none")(lambda: opens("/proc/sysrq-trigger"))
attempt("the kernel's log", AS_ROOT)(lambda: opens("/dev/kmsg", os.O_RDONLY))
attempt("a block device", AS_ROOT)(lambda: os.mknod(f"{PROJECT}/disk", 0o60600, os.makedev(7, 0)) or not os.unlink(f"{PROJECT}/disk"))

# What runs later, outside.
attempt("a git hook")(lambda: writes(f"{PROJECT}/.git/hooks/post-commit"))
attempt("a git hook of a repository below")(lambda: writes(f"{PROJECT}/app/.git/hooks/post-commit"))
attempt("a hook of an agent")(lambda: writes(f"{PROJECT}/.claude/settings.local.json"))
attempt("a plugin of another agent")(lambda: writes(f"{PROJECT}/.opencode/plugin.js"))
attempt("a task of an editor")(lambda: writes(f"{PROJECT}/.vscode/tasks.json"))
attempt("a task of another editor")(lambda: writes(f"{PROJECT}/.idea/workspace.xml"))


def appends(path):
    with open(path, "a") as file:
        file.write("")
    return True


def moves_away():
    os.rename(f"{PROJECT}/app", f"{PROJECT}/app-moved")
    os.rename(f"{PROJECT}/app-moved", f"{PROJECT}/app")
    return True


attempt("moving a repository away")(moves_away)
attempt("the settings of git")(lambda: appends(f"{PROJECT}/.git/config"))
attempt("the shell's settings of the folder")(lambda: appends(f"{PROJECT}/.envrc"))


def renames(one, other):
    os.rename(one, other)
    os.rename(other, one)
    return True


attempt("hooks in a new .git")(lambda: renames(f"{PROJECT}/.git", f"{PROJECT}/.git-old"))
attempt("hooks in a new folder")(lambda: renames(f"{PROJECT}/.git/hooks", f"{PROJECT}/.git/old"))
attempt("settings of git by replacing them")(lambda: renames(f"{PROJECT}/.git/config", f"{PROJECT}/.git/config-old"))

# Other processes.
attempt("a signal to a process of the machine")(lambda: os.kill(T["pid"], 0) is None)
attempt("a process of the machine by its descriptor")(lambda: call(434, 434, T["pid"], 0) >= 0)
attempt("the environment of a process")(lambda: T["secret"] in open(f"/proc/{T['pid']}/environ").read())
attempt("the files that a process sees")(lambda: reads(f"/proc/{T['pid']}/root{T['neighbour']}"))
attempt("the descriptors of a process")(lambda: len(os.listdir(f"/proc/{T['pid']}/fd")) > 0)
attempt("the network of a process", AS_ROOT)(
    lambda: in_child(lambda: call(308, 268, os.open(f"/proc/{T['pid']}/ns/net", os.O_RDONLY), 0))
)


@attempt("ptrace")
def ptrace():
    return in_child(lambda: call(101, 117, 0, 0, 0, 0))


@attempt("the memory of a process")
def memory():
    here, there = ctypes.create_string_buffer(b"x" * 8), ctypes.create_string_buffer(8)
    near = (ctypes.c_ulong * 2)(ctypes.addressof(there), 8)
    far = (ctypes.c_ulong * 2)(ctypes.addressof(here), 8)
    return call(310, 270, os.getpid(), near, 1, far, 1, 0) == 8


attempt("shared memory by its key")(lambda: call(29, 194, T["shm_key"], 0, 0) >= 0)
attempt("the keyring of the user")(lambda: call(250, 219, 0, -4, 1, 0, 0) != 0)
attempt("a new key")(lambda: call(248, 217, b"user", b"svc-escape", b"x", 1, -1) != 0)

# The kernel.
NEW_USER, NEW_NET, NEW_MOUNTS = 0x10000000, 0x40000000, 0x20000
attempt("a new user namespace", "forbids it")(lambda: in_child(lambda: call(272, 97, NEW_USER)))
attempt("a new network", AS_ROOT)(lambda: in_child(lambda: call(272, 97, NEW_NET)))
attempt("new mounts", AS_ROOT)(lambda: in_child(lambda: call(272, 97, NEW_MOUNTS)))


@attempt("a process in a new user namespace", "forbids it")
def clones():
    pid = call(56, 220, NEW_USER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def mounts():
    call(272, 97, NEW_MOUNTS)
    call(165, 40, b"none", b"/tmp", b"tmpfs", 0, None)


attempt("a mount", AS_ROOT)(lambda: in_child(mounts))
attempt("another root", AS_ROOT)(lambda: in_child(lambda: call(161, 51, b"/")))
attempt("a file system's handle", AS_ROOT)(lambda: call(430, 430, b"tmpfs", 0) >= 0)
attempt("a copy of the mount tree", AS_ROOT)(lambda: call(428, 428, -100, b"/", 1) >= 0)


@attempt("a file by its handle", "has a file system without handles")
def handle():
    space = ctypes.create_string_buffer((128).to_bytes(4, sys.byteorder) + bytes(140), 144)
    return call(303, 264, -100, T["neighbour_folder"].encode(), space, ctypes.byref(ctypes.c_int()), 0) == 0


attempt("programs in the kernel", AS_ROOT)(lambda: call(321, 280, 0, ctypes.create_string_buffer(bytes([2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0]) + bytes(112), 128), 128) >= 0)
attempt("counters of the processor", "forbids it")(lambda: call(298, 241, ctypes.create_string_buffer((1).to_bytes(4, "little") + (112).to_bytes(4, "little") + bytes(104), 112), 0, -1, -1, 0) >= 0)
attempt("page faults in hand", "forbids it")(lambda: call(323, 282, 1) >= 0)
attempt("io_uring", "forbids it")(lambda: call(425, 425, 2, ctypes.create_string_buffer(120)) >= 0)
attempt("more rights by a program's owner")(lambda: LIBC.prctl(39, 0, 0, 0, 0) == 0)


def types_at_terminal(request):
    def work():
        primary, secondary = pty.openpty()
        os.setsid()
        fcntl.ioctl(secondary, 0x540E, 0)
        call(16, 29, secondary, request, ctypes.create_string_buffer(b"x"))

    return in_child(work)


attempt("typing at a terminal", "forbids it")(lambda: types_at_terminal(0x5412))
attempt("typing with bits that the kernel drops", "forbids it")(lambda: types_at_terminal(0x100005412))


@attempt("system calls of x32", "has none")
def x32():
    if ARM:
        raise OSError(errno.ENOSYS, "not on this machine")
    # A filter that does not know them ends the process.
    return in_child(lambda: call(0x40000000 | 39, 0))


@attempt("system calls of 32 bits", "has none")
def of_32_bits():
    if ARM:
        raise OSError(errno.ENOSYS, "not on this machine")

    def work():
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        # mov eax, 20 (getpid); int 0x80; ret
        code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        if ctypes.CFUNCTYPE(ctypes.c_int)(address)() != os.getpid():
            raise OSError(errno.ENOSYS, "not in this kernel")

    return in_child(work)


def main():
    results = {}
    for name, function, unless in ATTEMPTS:
        try:
            out, why = bool(function()), ""
        except Exception as error:
            out, why = False, f"{type(error).__name__}: {error}"
        results[name] = {"out": out, "why": why, "unless": unless}
    print(json.dumps(results))


main()
