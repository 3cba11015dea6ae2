"""Scans of maps: a cursor is valid without state in the server, and a step is as long as requested."""
import os

import pytest

from conftest import CONTROL, ours
from resp import as_pairs, is_error
from servers import is_replicated, until

# The native type has none of these properties: it returns small hashes whole, and a cursor is a place in the table of one
# process.
pytestmark = pytest.mark.skipif(CONTROL, reason="properties of the module's scans only")


def fill(client, key, fields=5000):
    names = [b"field:%08d" % at for at in range(fields)]
    client.load(["LP.HSET", key, *(part for name in names[at:at + 100] for part in (name, b"value of " + name))]
                for at in range(0, fields, 100))
    return names


def rest_of(client, key, cursor, *options):
    """All fields from a cursor on, in order of their return."""
    names = []
    while True:
        cursor, part = client("LP.HSCAN", key, cursor, *options)
        names += part[::2]
        if cursor == b"0":
            return names


def test_the_scans_of_others_do_not_matter(client):
    names = fill(client, "m")
    cursor, first = client("LP.HSCAN", "m", 0, "COUNT", 10)
    for other in client.pipe(["LP.HSCAN", "m", 0, "COUNT", 10] for _ in range(5000)):
        assert other == [cursor, first]
    assert first[::2] + rest_of(client, "m", cursor, "COUNT", 500) == names


def test_a_cursor_is_valid_after_a_restart_and_on_a_replica(start):
    server, replica = start(), start()
    client = server.client()
    names = fill(client, "m", 20_000)
    with replica.client() as there:
        there("REPLICAOF", "127.0.0.1", server.port)
        until(lambda: is_replicated(client, there), 60, "the replica")
        cursor, first = client("LP.HSCAN", "m", 0, "COUNT", 7000)
        assert first[::2] + rest_of(there, "m", cursor, "COUNT", 1000) == names
    client("SAVE")
    client = server.restart().client()
    assert first[::2] + rest_of(client, "m", cursor, "COUNT", 1000) == names


def test_a_cursor_of_another_key_reveals_nothing(client):
    """The fields of one's own key that are returned do not depend on where the other's scan stands."""
    fill(client, "secret", 2000)
    cursor = client("LP.HSCAN", "secret", 0, "COUNT", 777)[0]
    for probe in (b"field:00000000", b"field:00000777", b"field:99999999", b"a", b"z"):
        client("DEL", "mine")
        client("LP.HSET", "mine", probe, "1")
        assert client("LP.HSCAN", "mine", cursor) == [b"0", [probe, b"1"]]


def test_an_unknown_cursor_begins_again(client):
    names = fill(client, "m", 1000)
    for cursor in (1, 4096, 12_345_678, 1 << 53, (1 << 63) - 1, (1 << 64) - 1):
        assert rest_of(client, "m", cursor, "COUNT", 100) == names
    for cursor in ("-1", 1 << 64, "x", ""):
        assert is_error(client.request("LP.HSCAN", "m", cursor))


@pytest.mark.parametrize("fields", [100, 500, 5000])
def test_a_step_is_about_as_long_as_requested(client, fields):
    names = fill(client, "m", fields)
    for count in (1, 10, 50):
        cursor, part = client("LP.HSCAN", "m", 0, "COUNT", count)
        assert count <= len(part) // 2 <= count + count // 2 and cursor != b"0"
        assert part[::2] + rest_of(client, "m", cursor, "COUNT", count) == names


def test_a_step_of_long_values_is_bounded(client):
    """Of 60 MB in values of 600 kB, a step returns what was requested, or 16 MiB and one record."""
    value = os.urandom(600_000)
    for at in range(100):
        client("LP.HSET", "m", at, value)
    assert len(client("LP.HSCAN", "m", 0, "COUNT", 4)[1]) // 2 in (4, 5, 6)
    cursor, part = client("LP.HSCAN", "m", 0, "COUNT", 1_000_000)
    assert cursor != b"0" and sum(map(len, part)) < (16 << 20) + 700_000
    assert len(part[::2] + rest_of(client, "m", cursor, "COUNT", 1_000_000)) == 100


def test_clients_that_remove_what_they_scan_get_everything_between_them(client):
    names = fill(client, "m", 3000)
    cursors, seen = [b"0"] * 3, []
    while any(cursor is not None for cursor in cursors):
        for at, cursor in enumerate(cursors):
            if cursor is None:
                continue
            cursor, part = client("LP.HSCAN", "m", cursor, "COUNT", 10)
            seen += part[::2]
            if part:
                client("LP.HDEL", "m", *part[::2])
            cursors[at] = None if cursor == b"0" else cursor
    assert sorted(seen) == names and client("EXISTS", "m") == 0


def test_values_of_a_scan_are_those_of_its_fields(client):
    names = fill(client, "m", 1000)
    cursor, part = client("LP.HSCAN", "m", 0, "COUNT", 600)
    assert as_pairs(part) == [(name, b"value of " + name) for name in names[:len(part) // 2]]
