"""What the tests share: servers of each version that there is, the time they may take, and what is reported of those that
are missing.

LEAFPRESS_CONTROL=1 runs the native commands instead of ours, which shows that a test expects nothing that the native
type does not do. VALKEY_SECONDS bounds the run: what has not begun by then is left out, and the summary says how much
that was.
"""
import os
import sys
import time

import hypothesis
import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "harness"))
import servers  # noqa: E402
from servers import CONTROL, ours  # noqa: E402, F401  (the tests take `ours` from here)

KINDS = servers.kinds()
BEGAN = time.monotonic()
SECONDS = int(os.environ.get("VALKEY_SECONDS") or 0)
LEFT_OUT = "left out: the time was up"

# Its files go where the build's go.
hypothesis.configuration.set_hypothesis_home_dir(os.path.join(os.path.dirname(servers.directory()), "hypothesis"))
hypothesis.settings.register_profile("quick", max_examples=60, deadline=None, database=None,
                                     suppress_health_check=list(hypothesis.HealthCheck))
hypothesis.settings.register_profile("long", max_examples=3000, deadline=None, database=None,
                                     suppress_health_check=list(hypothesis.HealthCheck))
hypothesis.settings.load_profile("long" if os.environ.get("VALKEY_LONG") == "1" else "quick")

FILES = ["differential", "ordered", "scan", "long_strings", "keyspace", "module", "convert", "usage", "transparent", "advise", "restore", "persistence", "faults", "memory", "replication", "cluster"]


def pytest_configure(config):
    config.addinivalue_line("markers", "long: runs in `make test-valkey` only, not in the part that is bounded in time")
    config.addinivalue_line("markers", "only(*names): runs on these versions only")


def pytest_report_header(config):
    there = [f"{kind} ({'.'.join(map(str, kind.version))})" for kind in KINDS if kind.is_there]
    missing = [f"{kind}: {kind.sought}" for kind in KINDS if not kind.is_there]
    return ["servers: " + (", ".join(there) or "none"), *("MISSING " + line for line in missing),
            "module: " + ("the native commands in its place (LEAFPRESS_CONTROL=1)" if CONTROL else servers.module())]


def pytest_generate_tests(metafunc):
    if "kind" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("only")
        named = [kind for kind in KINDS if not only or kind.name in only.args]
        metafunc.parametrize("kind", named, ids=[kind.name for kind in named], scope="session")


def pytest_collection_modifyitems(config, items):
    # Each version gets its turn of a file before the next file begins, so that a bound of time leaves out files and not
    # versions; what takes long comes last.
    def turn(item):
        file = os.path.basename(item.path).removeprefix("test_").removesuffix(".py")
        named = [number for number, kind in enumerate(KINDS) if kind.name in item.name]
        return (item.get_closest_marker("long") is not None, FILES.index(file) if file in FILES else len(FILES), named)
    items.sort(key=turn)


def pytest_runtest_setup(item):
    if item.get_closest_marker("long") and os.environ.get("VALKEY_LONG") != "1":
        pytest.skip("left out of the quick part")
    if SECONDS and time.monotonic() - BEGAN > SECONDS:
        pytest.skip(LEFT_OUT)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for server in servers.RUNNING:
            if os.path.exists(server.log):
                report.sections.append((f"{server.kind} on port {server.port}", server.logged()[-1200:].decode(errors="replace")))


def pytest_terminal_summary(terminalreporter):
    by_reason = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        by_reason[reason.removeprefix("Skipped: ")] = by_reason.get(reason.removeprefix("Skipped: "), 0) + 1
    by_kind = {}
    for verdict in ("passed", "failed", "skipped", "error"):
        for report in terminalreporter.stats.get(verdict, []):
            named = next((kind.name for kind in KINDS if kind.name in report.nodeid), "no server")
            by_kind.setdefault(named, {}).setdefault(verdict, 0)
            by_kind[named][verdict] += 1
    # In the words of Rust's test programs, which `scripts/checks` counts by.
    for report in terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", []):
        terminalreporter.line(f"test {report.nodeid} ... FAILED")
    passed, failed = (len(terminalreporter.stats.get(verdict, [])) for verdict in ("passed", "failed"))
    terminalreporter.line(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed")
    terminalreporter.section("servers and what was skipped")
    for named, verdicts in sorted(by_kind.items()):
        terminalreporter.line(f"{named}: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    for kind in KINDS:
        if not kind.is_there:
            terminalreporter.line(f"{kind} was not there: {kind.sought}")
    for reason, count in sorted(by_reason.items()):
        terminalreporter.line(f"skipped: {reason}: {count}")


def demand(kind):
    """Skips the test where the server is missing; with REQUIRE=1 that is a failure."""
    if not kind.is_there:
        if os.environ.get("REQUIRE") == "1":
            pytest.fail(f"REQUIRE=1, and {kind.sought}", pytrace=False)
        pytest.skip(kind.sought)


_SHARED = {}


def shared_server(kind):
    """A server for all tests that leave it running; started anew after a crash, so that one fault does not fail the
    rest."""
    server = _SHARED.get(kind.name)
    if server and (server.process.poll() is not None or server.faults()):
        server.remove()
        server = None
    if not server:
        server = _SHARED[kind.name] = servers.Server(kind, **{"notify-keyspace-events": "KEA"}).start()
    return server


@pytest.fixture
def server(kind):
    """The shared server, empty."""
    demand(kind)
    server = shared_server(kind)
    with servers.Client(server.port) as client:
        client("FLUSHALL")
    yield server
    assert not server.faults(), server.faults()
    assert server.process.poll() is None, "the server has ended"


@pytest.fixture
def client(server):
    """A connection to the shared server."""
    client = server.client()
    yield client
    client.close()
    server.clients.remove(client)


@pytest.fixture
def start(kind):
    """Starts servers of one's own, with settings; they are gone after the test."""
    demand(kind)
    started = []

    def start(**settings):
        server = servers.Server(kind, **settings)
        started.append(server)
        return server.start()

    yield start
    faults = [fault for fault in (server.faults() for server in started) if fault]
    for server in started:
        server.remove()
    assert not faults, faults[0]
