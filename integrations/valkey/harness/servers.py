"""Finds the servers that there are, starts them on loopback in directories of their own, and ends every one of them."""
import atexit
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from resp import Client, ReplyError, info

HERE = os.path.dirname(os.path.abspath(__file__))
INTEGRATION = os.path.dirname(HERE)
ROOT = os.path.dirname(os.path.dirname(INTEGRATION))
# Runs native commands instead of the module's: a test that fails on the native type expects too much of the module.
CONTROL = os.environ.get("LEAFPRESS_CONTROL") == "1"
# What a server prints that has met a fault of its own or of a module.
FAULT_PATTERN = re.compile(rb"BUG REPORT START|ASSERTION FAILED|panicked at|=== .* MEMORY ERROR|Guru Meditation|crashed by signal")


def ours(name):
    """Returns the name of the module's command for a native one."""
    return name if CONTROL else "LP." + name


class Kind:
    """A server program of one version."""

    def __init__(self, name, binary, version, sought):
        self.name, self.binary, self.version = name, binary, version
        self.sought = sought
        self.is_valkey = name.startswith("valkey")

    @property
    def is_there(self):
        return self.version is not None

    def __repr__(self):
        return self.name


def directory():
    """Where `scripts/test-valkey` puts servers."""
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
    return os.environ.get("LEAFPRESS_VALKEY_SERVERS") or os.path.join(target, "valkey", "servers")


def _kind(name, wanted):
    program = "valkey-server" if name.startswith("valkey") else "redis-server"
    binary = os.path.join(directory(), name, program)
    if not os.access(binary, os.X_OK):
        return Kind(name, binary, None, f"no {binary}")
    logged = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10).stdout
    found = re.search(r"v=(\d+)\.(\d+)\.(\d+)", logged)
    if not found or not found.group(0)[2:].startswith(wanted + "."):
        return Kind(name, binary, None, f"{binary} is not of version {wanted}: {logged.strip()}")
    return Kind(name, binary, tuple(map(int, found.groups())), "")


def kinds():
    """The versions that the module is for, those that are not there included."""
    return [_kind("valkey-9.1", "9.1"), _kind("valkey-8.1", "8.1"), _kind("redis-7.0", "7.0")]


def module():
    """The module's file."""
    named = os.environ.get("LEAFPRESS_MODULE")
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(INTEGRATION, "target")
    path = named or os.path.join(target, "release", "libleafpress_valkey.so")
    if not os.path.exists(path):
        raise FileNotFoundError(f"the module is not built: {path} (scripts/test-valkey builds it; LEAFPRESS_MODULE names another)")
    return path


def module_with_faults():
    """A build of the module whose steps fail on request, or nothing: `scripts/test-valkey` makes it."""
    named = os.environ.get("LEAFPRESS_FAULTY_MODULE")
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(INTEGRATION, "target")
    path = named or os.path.join(target, "testing", "libleafpress_valkey.so")
    return path if os.path.exists(path) else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


RUNNING = []


PARENT = os.getpid()


def _die_with_parent():
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
    # It may have died before that was logged.
    if os.getppid() != PARENT:
        os._exit(1)


class Server:
    """A server and its directory, which is kept over restarts."""

    def __init__(self, kind, with_module=not CONTROL, module_arguments=(), has_faults=False, **settings):
        self.kind, self.has_faults = kind, has_faults
        self.directory = tempfile.mkdtemp(prefix="leafpress-valkey-")
        self.log = os.path.join(self.directory, "log")
        self.with_module, self.module_arguments = with_module, list(module_arguments)
        self.settings = {"save": '""', "appendonly": "no", "enable-debug-command": "yes", "repl-diskless-sync-delay": "0", "loglevel": "notice",
                         "repl-ping-replica-period": "1", **{name.replace("_", "-"): str(value) for name, value in settings.items()}}
        if kind.is_valkey:
            # The server's own checks of what modules do, as that replies come after notifications.
            self.settings.setdefault("enable-debug-assert", "yes")
        if not with_module:
            self.settings = {name: value for name, value in self.settings.items() if not name.startswith("leafpress.")}
        self.process = None
        self.clients = []
        self.port = None
        RUNNING.append(self)

    def start(self, seconds=60, **settings):
        """Starts it, or starts it again on the same port and files. Returns when it answers and has loaded its data."""
        self.settings.update({name.replace("_", "-"): str(value) for name, value in settings.items()})
        for attempt in range(5):
            if self.port is None:
                self.port = free_port()
            self._write_configuration()
            began = self._log_size()
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen([self.kind.binary, os.path.join(self.directory, "conf")], cwd=self.directory, stdout=log,
                                                stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent)
            if self._wait_until_it_answers(seconds):
                return self
            logged = self.logged()[began:]
            self.kill()
            if b"Address already in use" not in logged or attempt == 4:
                raise RuntimeError(f"{self.kind} did not start:\n{logged[-3000:].decode(errors='replace')}")
            self.port = None if "cluster-enabled" not in self.settings else free_port()
        raise RuntimeError("unreachable")

    def _write_configuration(self):
        lines = ["port %d" % self.port, "bind 127.0.0.1", "dir " + self.directory, "daemonize no"]
        if self.with_module:
            lines.append("loadmodule " + " ".join([module_with_faults() if self.has_faults else module(), *self.module_arguments]))
        if self.settings.get("cluster-enabled") == "yes":
            self.settings.setdefault("cluster-port", str(free_port()))
            self.settings.setdefault("cluster-node-timeout", "3000")
        lines += [f"{name} {value}" for name, value in self.settings.items()]
        with open(os.path.join(self.directory, "conf"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def _wait_until_it_answers(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with Client(self.port, timeout=seconds) as client:
                    client("PING")
                    if info(client, "server").get("process_id") != str(self.process.pid):
                        return False
                    return True
            except (OSError, ReplyError):
                time.sleep(0.02)
        return False

    def client(self, protocol=2, timeout=30.0):
        client = Client(self.port, protocol, timeout)
        self.clients.append(client)
        return client

    def logged(self):
        with open(self.log, "rb") as file:
            return file.read()

    def _log_size(self):
        return os.path.getsize(self.log) if os.path.exists(self.log) else 0

    def faults(self):
        """What it has printed of a fault, or why it is gone; empty if it runs and is well."""
        logged = self.logged() if os.path.exists(self.log) else b""
        if found := FAULT_PATTERN.search(logged):
            return logged[max(0, found.start() - 200):found.start() + 6000].decode(errors="replace")
        if self.process and self.process.poll() not in (None, 0, -signal.SIGKILL):
            return f"{self.kind} ended with {self.process.returncode}:\n" + logged[-3000:].decode(errors="replace")
        return ""

    def resident(self, most=False):
        """Resident bytes of the process, now or at most so far."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return 1024 * int(re.search(r"^%s:\s+(\d+) kB" % ("VmHWM" if most else "VmRSS"), file.read(), re.M).group(1))

    def trains(self):
        """Whether a dictionary is trained, be it for a tree that is gone: the module's threads are named by what they
        do."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                with open(f"/proc/{self.process.pid}/task/{thread}/comm", encoding="ascii") as file:
                    if file.read().startswith("leafpress-train"):
                        return True
            except OSError:
                continue  # It has ended.
        return False

    def _close_clients(self):
        for client in self.clients:
            client.close()
        self.clients = []

    def stop(self, seconds=30):
        """Ends it as an operator would (SIGTERM), which must work; kills it if it does not."""
        self._close_clients()
        if not self.process or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"{self.kind} did not end within {seconds} s") from None

    def kill(self):
        """Ends it and what it has forked at once."""
        self._close_clients()
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    def restart(self, **settings):
        self.stop()
        return self.start(**settings)

    def remove(self):
        """Ends it and deletes its files."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
        if self in RUNNING:
            RUNNING.remove(self)


def end_all():
    for server in list(RUNNING):
        server.remove()


atexit.register(end_all)


def until(condition, seconds=30, what="it", pause=0.02):
    """Waits for a condition; its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come within {seconds} s")
        time.sleep(pause)


def is_replicated(primary, replica):
    """Whether the replica is in step with its primary."""
    there, here = info(primary, "replication"), info(replica, "replication")
    return here.get("master_link_status") == "up" and here.get("slave_repl_offset") == there.get("master_repl_offset")
