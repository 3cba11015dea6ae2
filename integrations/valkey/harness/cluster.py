"""A cluster of primaries with a replica each, and a client that follows its redirections."""
import binascii
import time

from resp import Client, ReplyError, is_error
from servers import Server, is_replicated, until

SLOTS = 16_384
# Errors that end by themselves while the cluster changes: the command is sent again.
LATER = (b"CLUSTERDOWN", b"TRYAGAIN", b"LOADING", b"MASTERDOWN", b"READONLY", b"NOREPLICAS")


def slot_of(key):
    key = key if isinstance(key, bytes) else key.encode()
    if (start := key.find(b"{")) >= 0 and (end := key.find(b"}", start + 1)) > start + 1:
        key = key[start + 1:end]
    return binascii.crc_hqx(key, 0) % SLOTS


class Cluster:
    def __init__(self, kind, primaries=3, **settings):
        self.servers = [Server(kind, **{"cluster-enabled": "yes", "cluster-config-file": "nodes.conf", **settings}).start()
                        for _ in range(2 * primaries)]
        self.primaries, self.replicas = self.servers[:primaries], self.servers[primaries:]
        first = self.primaries[0]
        clients = {server: server.client() for server in self.servers}
        for server in self.servers[1:]:
            clients[first]("CLUSTER", "MEET", "127.0.0.1", server.port, server.settings["cluster-port"])
        for at, server in enumerate(self.primaries):
            clients[server]("CLUSTER", "ADDSLOTSRANGE", at * SLOTS // primaries, (at + 1) * SLOTS // primaries - 1)
        until(lambda: all(clients[server]("CLUSTER", "NODES").count(b"connected") == 2 * primaries for server in self.servers), 30,
              "the nodes' meeting")
        for primary, replica in zip(self.primaries, self.replicas):
            identity = clients[primary]("CLUSTER", "MYID")
            until(lambda: not is_error(clients[replica].request("CLUSTER", "REPLICATE", identity)), 20, "a replica's acquaintance")
        until(lambda: all(b"cluster_state:ok" in clients[server]("CLUSTER", "INFO") for server in self.servers), 30, "cluster_state:ok")
        until(lambda: all(is_replicated(clients[primary], clients[replica]) for primary, replica in zip(self.primaries, self.replicas)), 30,
              "the replicas' first synchronisation")
        self.wait_for_agreement()

    def wait_for_agreement(self, seconds=30):
        """Waits until every running node reports the same owner of every slot."""
        def owners(server):
            with server.client(timeout=5) as client:
                return sorted((entry[0], entry[1], entry[2][1]) for entry in client("CLUSTER", "SLOTS"))

        def agree():
            reported = [owners(server) for server in self.running()]
            return all(each == reported[0] for each in reported) and sum(entry[1] - entry[0] + 1 for entry in reported[0]) == SLOTS
        until(agree, seconds, "agreement on the slots", 0.1)

    def running(self):
        return [server for server in self.servers if server.process.poll() is None]

    def remove(self):
        for server in self.servers:
            server.remove()

    def owner(self, slot):
        """Returns the server that owns a slot, as reported by a running one."""
        with self.running()[0].client() as client:
            for start, end, primary, *_ in client("CLUSTER", "SLOTS"):
                if start <= slot <= end:
                    return next(server for server in self.servers if server.port == primary[1])
        raise AssertionError(f"nobody has slot {slot}")

    def replica_of(self, primary, seconds=30):
        """Its replica, as soon as it has one that is well."""
        return until(lambda: self._replica_of(primary), seconds, "the primary's replica")

    def _replica_of(self, primary):
        with primary.client() as client:
            identity = client("CLUSTER", "MYID")
            for line in client("CLUSTER", "NODES").decode().splitlines():
                parts = line.split()
                if parts[3] == identity.decode() and "fail" not in parts[2].replace("fail?", ""):
                    port = int(parts[1].split("@")[0].split(":")[1])
                    return next(server for server in self.servers if server.port == port)
        return None


class ClusterClient:
    """Sends each command to the owner of its key. Not for several threads at once."""

    def __init__(self, cluster, patience=20.0):
        self.cluster, self.patience = cluster, patience
        self.clients, self.owners = {}, {}

    def close(self):
        for client in self.clients.values():
            client.close()

    def _client(self, port):
        if port not in self.clients:
            self.clients[port] = Client(port, timeout=5)
        return self.clients[port]

    def _forget(self, port):
        if client := self.clients.pop(port, None):
            client.close()
        self.owners = {slot: owner for slot, owner in self.owners.items() if owner != port}

    def __call__(self, *command, key=None, wait=None):
        """The reply, and with `wait` the number of replicas that acknowledged it within that many milliseconds."""
        slot = slot_of(key if key is not None else command[1])
        port, sends_asking, deadline = self.owners.get(slot), False, time.monotonic() + self.patience
        last = None
        while time.monotonic() < deadline:
            port = port or self.cluster.running()[0].port
            try:
                client = self._client(port)
                if sends_asking:
                    client("ASKING")
                reply = client.request(*command)
                if not is_error(reply):
                    if not sends_asking:
                        self.owners[slot] = port
                    acknowledged = client.request("WAIT", 1, wait) if wait else 0
                    return (reply, acknowledged if isinstance(acknowledged, int) else 0) if wait else reply
            except (OSError, ReplyError) as failure:
                # A write of unknown outcome is not reported as done; it is sent again.
                last, sends_asking = failure, False
                self._forget(port)
                port = None
                time.sleep(0.05)
                continue
            last, sends_asking = reply, False
            word, *rest = reply.value.split(b" ")
            if word in (b"MOVED", b"ASK"):
                port = int(rest[1].rsplit(b":", 1)[1])
                sends_asking = word == b"ASK"
            elif word in LATER:
                time.sleep(0.02)
                port = None if word == b"READONLY" else port
            else:
                raise ReplyError(f"{reply.value.decode(errors='replace')} (to {command[0]})")
        raise TimeoutError(f"no reply to {command[:2]} within {self.patience} s; the last was {last!r}")
