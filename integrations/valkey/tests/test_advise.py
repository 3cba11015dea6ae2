"""`leafpress advise --redis` before real servers: it only reads, its figures are right, and what it projects is what the
module then takes."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

import data
from cluster import Cluster, ClusterClient
from conftest import CONTROL, demand
from resp import info
from servers import ROOT, Server, until

only_ours = pytest.mark.skipif(CONTROL, reason="about our type")
# Commands that a survey may have sent, as a server counts them.
READS = {"ping", "info", "select", "client|setinfo", "client|no-touch", "client", "auth", "scan", "randomkey", "type", "pttl", "object|idletime",
         "object|encoding", "object", "memory|usage", "memory", "strlen", "hlen", "llen", "scard", "zcard", "xlen", "getrange", "hscan",
         "cluster|slots", "config|resetstat"}


def command():
    named = os.environ.get("LEAFPRESS_COMMAND")
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
    found = [path for path in (named, os.path.join(target, "quick", "leafpress"), os.path.join(target, "release", "leafpress")) if path]
    path = next((path for path in found if os.path.exists(path)), None)
    if not path:
        raise FileNotFoundError(f"the command is not built: {found[0]} (scripts/test-valkey builds it; LEAFPRESS_COMMAND names another)")
    return path


def advise(url, *arguments, environment=None):
    """Runs it; standard output, standard error and the exit status."""
    words = [command(), "advise", "--redis", url, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**os.environ, **(environment or {})})
    return done.stdout, done.stderr, done.returncode


def survey(url, out, *arguments, **more):
    """Its results.json."""
    stdout, stderr, code = advise(url, "--server-cpu-pct", 100, "--out", out, *arguments, **more)
    assert code == 0, stderr
    with open(os.path.join(out, "results.json"), encoding="utf-8") as file:
        return json.load(file), stdout


def url_of(server, user="", database=""):
    return f"redis://{user}127.0.0.1:{server.port}{database}"


def commands(mine, strings=6000, hashes=3000):
    """Three kinds of data: JSON documents, maps of ten fields, counters."""
    prefix = "LP." if mine else ""
    for number, document in enumerate(data.documents(strings)):
        yield [prefix + "SET", b"session:%08d" % number, document]
    for number, pairs in enumerate(data.fields_of_64(hashes)):
        yield [prefix + "HSET", b"user:%08d" % number, *(part for pair in pairs for part in pair)]
    for number in range(2000):
        yield ["SET", b"counter:%06d" % number, number * 7]


def used(client):
    return int(info(client, "memory")["used_memory"])


def filled(server, mine=False, **sizes):
    """Loads a server; by how much its memory grew."""
    client = server.client(timeout=60)
    before = used(client)
    client.load(commands(mine, **sizes))
    if mine:
        until(lambda: not server.trains(), 60, "the end of trainings")
        client("LP.COMPACT", "SYNC")
    return used(client) - before


def group(found, prefix):
    return next(each for each in found["groups"] if each["prefix"] == prefix)


def test_it_reads_only_and_its_figures_are_right(start, tmp_path):
    server = start()
    client = server.client()
    client.load(commands(False, 2000, 500))
    client("EXPIRE", "session:00000001", 1000)
    client("RPUSH", b"\xff\x00list", *range(5000))
    client("ZADD", "scores", 1, "a", 2, "b")
    client("SADD", "members", *range(50))
    client("XADD", "events", "*", "a", "b")
    client("SELECT", 3)
    client("SET", "elsewhere:1", "x" * 100_000)
    client("SELECT", 0)
    digest = client("DEBUG", "DIGEST")
    client("CONFIG", "RESETSTAT")
    found, text = survey(url_of(server), tmp_path)
    counted = {line.split(":")[0].removeprefix("cmdstat_") for line in client("INFO", "commandstats").decode().split() if line.startswith("cmdstat_")}
    assert counted <= READS, counted - READS
    assert client("DEBUG", "DIGEST") == digest
    assert found["is_complete"] and found["keys"] == 2000 + 500 + 2000 + 4 + 1
    for prefix, kind, keys in (("session:", "string", 2000), ("user:", "hash", 500), ("counter:", "string", 2000)):
        assert (group(found, prefix)["kind"], group(found, prefix)["keys"]) == (kind, keys)
    usage = sum(client("MEMORY", "USAGE", b"user:%08d" % number) for number in range(500))
    assert group(found, "user:")["bytes"] == usage
    assert found["largest"][0]["name"] == "elsewhere:1" and found["largest"][0]["database"] == 3
    assert any(each["name"] == "\\xff\\x00list" for each in found["largest"])
    assert "session:" in text and "leafpress.string-prefixes" in text
    # One database.
    assert survey(url_of(server, database="/3"), tmp_path)[0]["keys"] == 1


@only_ours
def test_what_it_projects_is_what_the_module_then_takes(start, tmp_path):
    native, ours = start(), start()
    now = filled(native)
    found, _ = survey(url_of(native), tmp_path, "--sample-keys", 4000, "--sample-bytes", "4M")
    moved = [group(found, "session:"), group(found, "user:")]
    projected = now - sum(each["bytes"] - each["estimate"]["module_bytes"] for each in moved) + found["module_fixed_bytes"]
    then = filled(ours, mine=True)
    print(f"native {now:,}, projected {projected:,.0f}, with the module {then:,}: {projected / then - 1:+.1%}")
    # It is within 5% where the module's trial of codecs ends as the command's did, which depends on measured times.
    assert abs(projected / then - 1) < 0.25
    assert abs(found["keys"] - 11_000) < 0.5


def test_a_sample_costs_the_server_little(start, tmp_path):
    server = start()
    filled(server, strings=20_000, hashes=100)
    client = server.client()

    def busy():
        return sum(float(info(client, "cpu")[name]) for name in ("used_cpu_user", "used_cpu_sys"))
    before, began = busy(), time.monotonic()
    found, _ = survey(url_of(server), tmp_path, "--sample-keys", 2000, "--sample-bytes", "1M", "--server-cpu-pct", 5)
    spent, took = busy() - before, time.monotonic() - began
    print(f"{spent:.3f} s of {took:.1f} s: {spent / took:.1%}; said {found['spent']['busy_s']:.3f} s")
    assert found["sampled"] == 2000 and not found["is_complete"]
    # The server's own work, that is without any client, is in it too.
    assert spent < 0.08 * took + 0.2


def test_reports_permissions_that_users_lack(start):
    server = start()
    client = server.client()
    client.load(commands(False, 100, 10))
    client("ACL", "SETUSER", "none", "on", ">secret", "~*", "+@connection", "+info")
    client("ACL", "SETUSER", "some", "on", ">secret", "~user:*", "+@read", "+info", "+select", "+client", "+memory", "+object", "+type")
    client("CONFIG", "SET", "requirepass", "master")
    for user, secret, expected in (("none", "secret", "may not run SCAN"), ("none", "wrong", "does not accept the user and the password")):
        stdout, stderr, code = advise(url_of(server, f"{user}:{secret}@"))
        assert (code, stdout) == (1, "") and expected in stderr and "secret" not in stderr, stderr
    stdout, stderr, code = advise(url_of(server))
    assert code == 1 and "it asks for a password" in stderr and "REDISCLI_AUTH" in stderr, stderr
    stdout, stderr, code = advise(url_of(server), environment={"REDISCLI_AUTH": "master"})
    assert code == 0 and "session:" in stdout, stderr
    stdout, stderr, code = advise(url_of(server, "some:secret@"))
    assert code == 0 and "user:" in stdout and "session:" not in stdout and "not for this user" in stdout, stdout + stderr


def test_passwords_are_not_in_the_report(start, tmp_path):
    server = start()
    client = server.client()
    client.load(commands(False, 100, 10))
    client("CONFIG", "SET", "requirepass", "master#1")
    survey(url_of(server, ":master%231@"), tmp_path)
    for name in os.listdir(tmp_path):
        with open(tmp_path / name, encoding="utf-8") as file:
            assert "master" not in file.read(), name


def test_a_server_that_goes_away_leaves_what_was_found(start):
    server = start()
    filled(server, strings=5000, hashes=100)
    words = [command(), "advise", "--redis", url_of(server), "--server-cpu-pct", "0.5"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    client = server.client()
    until(lambda: int(info(client, "commandstats").get("cmdstat_type", "calls=0").split("=")[1].split(",")[0]) > 500, 60, "the survey")
    server.kill()
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1 and "The survey ended early" in stdout and stderr.startswith("error: "), stdout + stderr
    server.start()
    stdout, stderr, code = advise("redis://127.0.0.1:1")
    assert (code, stdout) == (1, "") and "127.0.0.1:1" in stderr, stderr


def test_it_stops_with_what_it_has(start):
    server = start()
    filled(server, strings=5000, hashes=100)
    words = [command(), "advise", "--redis", url_of(server), "--server-cpu-pct", "0.5"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    client = server.client()
    until(lambda: int(info(client, "commandstats").get("cmdstat_type", "calls=0").split("=")[1].split(",")[0]) > 500, 60, "the survey")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and "It was interrupted" in stdout and "interrupted" in stderr, stdout + stderr


@pytest.mark.long
def test_a_cluster_is_surveyed_whole(kind, tmp_path):
    demand(kind)
    cluster = Cluster(kind)
    client = ClusterClient(cluster)
    try:
        for number in range(3000):
            client("SET", f"session:{number}", "value of a session " * 20)
        found, text = survey(url_of(cluster.replicas[0]), tmp_path)
        assert len(found["servers"]) == 3 and found["keys"] == 3000, text
        found, _ = survey(url_of(cluster.primaries[0]), tmp_path, "--sample-keys", 600)
        assert abs(found["keys"] - 3000) < 1 and found["sampled"] >= 600
    finally:
        client.close()
        cluster.remove()


@pytest.mark.only("redis-7.0")
def test_tls_and_unix_sockets(kind, tmp_path):
    demand(kind)
    if not shutil.which("openssl"):
        pytest.skip("it needs openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    from servers import free_port
    tls, socket = free_port(), str(tmp_path / "s")
    server = Server(kind, **{"tls-port": tls, "tls-cert-file": certificate, "tls-key-file": key, "tls-auth-clients": "no", "unixsocket": socket})
    try:
        server.start()
        server.client().load(commands(False, 100, 10))
        for url, more in ((f"rediss://localhost:{tls}", ["--redis-ca", certificate]), (f"unix://{socket}", [])):
            found, _ = survey(url, tmp_path / "out", *more)
            assert found["keys"] == 2110, url
        stdout, stderr, code = advise(f"rediss://localhost:{tls}/#insecure")
        assert (code, stdout) == (2, "") and "--redis-ca" in stderr, stderr
        stdout, stderr, code = advise(f"rediss://localhost:{tls}")
        assert (code, stdout) == (1, "") and "certificate" in stderr.lower(), stderr
    finally:
        server.remove()
