"""Compares every command with its native twin in one server: random commands, RESP2 and RESP3, plain, in a transaction
and from a script."""
import pytest
from hypothesis import given

from conftest import ours
from resp import Reply, as_pairs, is_error
from sequences import HASH_SEQUENCES, MIXED_SEQUENCES, STRING_SEQUENCES, known
from twins import TWINS, Key, compare

WAYS = [(2, "plain"), (3, "plain"), (2, "multi"), (3, "multi"), (2, "lua"), (3, "lua")]


@pytest.fixture(params=WAYS, ids=[f"resp{protocol}-{way}" for protocol, way in WAYS])
def pair(request, server):
    protocol, way = request.param
    client = server.client(protocol)
    yield client, way, server.kind
    client.close()
    server.clients.remove(client)


def check(pair, commands):
    client, way, kind = pair
    client.pipe([["FLUSHDB"], ["SELECT", 5], ["FLUSHDB"], ["SELECT", 0]])
    compare(client, known(commands, kind), way)
    # And what is there in the end.
    compare(client, [[read, Key(name)] for name in "abc" for read in ("EXISTS", "HGETALL", "HLEN", "GET", "EXPIRETIME")])


def test_maps(pair):
    given(commands=HASH_SEQUENCES)(lambda commands: check(pair, commands))()


def test_strings(pair):
    given(commands=STRING_SEQUENCES)(lambda commands: check(pair, commands))()


def test_both_on_the_same_keys(pair):
    given(commands=MIXED_SEQUENCES)(lambda commands: check(pair, commands))()


@pytest.mark.parametrize("protocol", [2, 3])
def test_each_count_of_arguments(server, protocol):
    """From none to six arguments, each an odd one: the same errors, and the same replies."""
    keys = {"MGET": range(6), "MSET": range(0, 6, 2), "MSETNX": range(0, 6, 2), "MSETEX": [1], "LCS": [0, 1]}
    with server.client(protocol) as client:
        for name in TWINS:
            for count in range(7):
                client("FLUSHDB")
                arguments = [Key(part) if at in keys.get(name, [0]) else part for at, part in enumerate("112345"[:count])]
                compare(client, [[name, *arguments]])
    server.clients.remove(client)


@pytest.mark.parametrize("fields", [0, 1, 10, 511, 512, 513, 5000])
def test_scan_names_each_field_once_or_more(client, fields):
    """A whole iteration names all that is there all the time, with its value, and ends."""
    client.load([ours("HSET"), "m", f"field:{at}", f"value of {at}"] for at in range(fields))
    for more in ([], ["COUNT", 1], ["COUNT", 100], ["MATCH", "field:1*"], ["MATCH", "field:1*", "COUNT", 7]):
        cursor, seen, rounds = b"0", {}, 0
        while True:
            cursor, part = client(ours("HSCAN"), "m", cursor, *more)
            for field, value in as_pairs(part):
                seen[field] = value
            rounds += 1
            assert rounds < 3 * fields + 10, "the iteration does not end"
            if cursor == b"0":
                break
        wanted = {b"field:%d" % at: b"value of %d" % at for at in range(fields)}
        if "MATCH" in more:
            wanted = {field: value for field, value in wanted.items() if field.startswith(b"field:1")}
        assert seen == wanted


def test_scan_while_the_map_changes(client):
    """What is there from the beginning to the end is named, though a third of the map goes and as much comes
    meanwhile."""
    client.load([ours("HSET"), "m", f"field:{at:05}", at] for at in range(3000))
    cursor, seen, at = b"0", set(), 0
    while True:
        cursor, part = client(ours("HSCAN"), "m", cursor, "COUNT", 20)
        seen.update(field for field, _ in as_pairs(part))
        if at < 1000:
            client.load([[ours("HDEL"), "m", f"field:{3 * step:05}"] for step in range(at, at + 20)])
            client.load([[ours("HSET"), "m", f"new:{step}", 1] for step in range(at, at + 20)])
            at += 20
        if cursor == b"0":
            break
    assert {b"field:%05d" % at for at in range(3000) if at % 3} <= seen


def test_scan_wants_a_cursor_and_known_options(client):
    client(ours("HSET"), "m", "f", "v")
    for odd in (["x"], ["0", "COUNT"], ["0", "COUNT", "0"], ["0", "COUNT", "x"], ["0", "BOGUS"]):
        native, mine = client.request("HSCAN", "none", *odd), client.request(ours("HSCAN"), "none", *odd)
        assert is_error(native) == is_error(mine), f"{odd}: {native} and {mine}"
    assert client(ours("HSCAN"), "none", "0") == [b"0", []]


def test_random_fields_are_spread(client):
    """Of eight fields each is drawn: 400 draws leave one out once in 10^22 times."""
    client.load([ours("HSET"), "m", f"f{at}", at] for at in range(8))
    drawn = {client(ours("HRANDFIELD"), "m") for _ in range(400)}
    assert len(drawn) == 8
    assert len(set(client(ours("HRANDFIELD"), "m", -400))) == 8


def test_floats_compared_with_native_ones(client):
    """Sums of floats reply what the native command replies, digit by digit."""
    steps = ["0.1", "0.2", "1e-7", "-3.33", "1e17", "-1e17", "0.000001", "123456789.987654321", "1.5e300", "-1.5e300", "5e-320"]
    compare(client, [["HINCRBYFLOAT", Key("m"), "f", step] for step in steps])
    compare(client, [["HGET", Key("m"), "f"]])
    compare(client, [["HSET", Key("m"), "g", "  3"], ["HINCRBYFLOAT", Key("m"), "g", "1"], ["HINCRBYFLOAT", Key("m"), "f", "x"]])


def test_values_of_every_size(client):
    """From nothing to a megabyte, both of text and of bytes that do not compress."""
    import random
    source = random.Random(1)
    for size in (0, 1, 63, 64, 65, 511, 4095, 4096, 4097, 16_383, 65_535, 65_536, 200_000, 1_000_000):
        for value in (b"t" * size, source.randbytes(size)):
            client(ours("HSET"), "m", b"%d" % size, value)
            client(ours("SET"), "s", value)
            assert client(ours("HGET"), "m", b"%d" % size) == value
            assert client(ours("GET"), "s") == value
            assert client(ours("HSTRLEN"), "m", b"%d" % size) == client(ours("STRLEN"), "s") == size


def test_resp3_returns_maps(server):
    with server.client(3) as client:
        client(ours("HSET"), "m", "a", "1", "b", "2")
        reply = client(ours("HGETALL"), "m")
        assert isinstance(reply, Reply) and reply.kind == "map" and sorted(reply.value) == [(b"a", b"1"), (b"b", b"2")]
    server.clients.remove(client)
