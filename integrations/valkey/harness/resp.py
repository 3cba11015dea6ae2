"""A client of RESP2 and RESP3 that keeps replies unconverted: each kind of reply is distinguished from every other."""
import socket


class ReplyError(Exception):
    """The server answered with an error where none was expected."""


class Reply:
    """A reply that Python has no plain type for: `kind` is its type. Equal only to the same kind with the same
    value."""

    __slots__ = ("kind", "value")

    def __init__(self, kind, value):
        self.kind, self.value = kind, value

    def __eq__(self, other):
        return isinstance(other, Reply) and self.kind == other.kind and self.value == other.value

    def __hash__(self):
        return hash((self.kind, repr(self.value)))

    def __repr__(self):
        return f"<{self.kind} {self.value!r}>"

    @property
    def is_error(self):
        return self.kind == "error"


OK, QUEUED, NULL_ARRAY = Reply("status", b"OK"), Reply("status", b"QUEUED"), Reply("null-array", None)


def is_error(reply):
    return isinstance(reply, Reply) and reply.is_error


def is_compressed(client, key):
    """Whether a key has a value of the module's."""
    reply = client.request("LP.INFO", key)
    return reply is not None and not is_error(reply)


def argument(value):
    if isinstance(value, bytes):
        return value
    return str(value).encode()


def pack(command):
    """A command as the server reads it."""
    parts = [b"*%d\r\n" % len(command)]
    for value in command:
        value = argument(value)
        parts.append(b"$%d\r\n%s\r\n" % (len(value), value))
    return b"".join(parts)


class Client:
    """One connection. Its timeout is for each wait, so that a server that hangs fails the test that waits."""

    def __init__(self, port, protocol=2, timeout=20.0, host="127.0.0.1"):
        self.port = port
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", buffering=1 << 16)
        self.pushed = []
        self.protocol = protocol
        if protocol == 3:
            self("HELLO", 3)

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __call__(self, *command):
        """The reply; an error is raised."""
        reply = self.request(*command)
        if is_error(reply):
            raise ReplyError(f"{reply.value.decode(errors='replace')} (to {' '.join(map(str, command))[:200]})")
        return reply

    def request(self, *command):
        """The reply, or the error as a reply."""
        self.socket.sendall(pack(command))
        return self.read()

    def pipe(self, commands, at_once=500):
        """The replies of many commands, sent without waiting between them, some at a time so that no buffer fills."""
        commands, replies = list(commands), []
        for start in range(0, len(commands), at_once):
            part = commands[start:start + at_once]
            self.socket.sendall(b"".join(map(pack, part)))
            replies += [self.read() for _ in part]
        return replies

    def load(self, commands, at_once=500):
        """The same for commands none of which may fail; their number."""
        count, part = 0, []
        for command in commands:
            part.append(command)
            if len(part) == at_once:
                count += self._load(part)
                part = []
        return count + self._load(part)

    def _load(self, part):
        for command, reply in zip(part, self.pipe(part)):
            if is_error(reply):
                raise ReplyError(f"{reply.value.decode(errors='replace')} (to {command[0]})")
        return len(part)

    def read(self):
        """The next reply; what the server pushes in between is put aside."""
        while True:
            reply = self._read()
            if isinstance(reply, Reply) and reply.kind == "push":
                self.pushed.append(reply.value)
            else:
                return reply

    def read_push(self):
        """The next thing that the server pushed."""
        if self.pushed:
            return self.pushed.pop(0)
        reply = self._read()
        return reply.value if isinstance(reply, Reply) and reply.kind == "push" else reply

    def _line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError(f"the server on port {self.port} closed the connection")
        return line[:-2]

    def _bytes(self, length):
        data = self.file.read(length + 2)
        if len(data) != length + 2:
            raise ConnectionError(f"the server on port {self.port} closed the connection")
        return data[:-2]

    def _read(self):
        line = self._line()
        mark, rest = line[:1], line[1:]
        if mark == b"$":
            return None if rest == b"-1" else self._bytes(int(rest))
        if mark == b":":
            return int(rest)
        if mark == b"+":
            return Reply("status", rest)
        if mark == b"-":
            return Reply("error", rest)
        if mark == b"*":
            return NULL_ARRAY if rest == b"-1" else [self._read() for _ in range(int(rest))]
        if mark == b"_":
            return None
        if mark == b"%":
            return Reply("map", [(self._read(), self._read()) for _ in range(int(rest))])
        if mark == b"~":
            return Reply("set", [self._read() for _ in range(int(rest))])
        if mark == b">":
            return Reply("push", [self._read() for _ in range(int(rest))])
        if mark == b"|":
            for _ in range(2 * int(rest)):
                self._read()
            return self._read()
        if mark == b",":
            return Reply("double", rest)
        if mark == b"#":
            return Reply("boolean", rest)
        if mark == b"(":
            return Reply("big-number", rest)
        if mark == b"!":
            return Reply("error", self._bytes(int(rest)))
        if mark == b"=":
            return Reply("verbatim", self._bytes(int(rest)))
        raise ConnectionError(f"no RESP: {line[:100]!r}")


def info(client, *sections):
    """The fields of INFO, as text."""
    text = client("INFO", *sections)
    text = text.value if isinstance(text, Reply) else text
    lines = text.decode(errors="replace").replace("\r", "").split("\n")
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def as_pairs(reply):
    """Returns the pairs of a map of either protocol."""
    if isinstance(reply, Reply) and reply.kind == "map":
        return reply.value
    return list(zip(reply[::2], reply[1::2]))
