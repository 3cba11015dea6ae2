"""Compares the ordered commands with a sorted set of the same fields, whose ranges by name are written the same."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import CONTROL
from resp import NULL_ARRAY, is_error
from sequences import FIELDS
from filling import big_map

pytestmark = pytest.mark.skipif(CONTROL, reason="no native twin")

BOUNDS = st.one_of(st.sampled_from([b"-", b"+", b"[", b"(", b"", b"f", b"[f", b"(f", b"[fg", b"(fg", b"[\xff", b"(\xff", b"[\x00", b"(\x00"]),
                   st.tuples(st.sampled_from([b"[", b"("]), FIELDS).map(b"".join))
NUMBERS = st.sampled_from([b"0", b"1", b"2", b"-1", b"3", b"100", b"x", b"", b"9223372036854775807"])
# From a negative offset on Valkey answers differently for small sorted sets and large ones.
LIMITS = st.one_of(st.just([]), st.tuples(NUMBERS.filter(lambda number: number != b"-1"), NUMBERS).map(lambda pair: [b"LIMIT", *pair]))


def error_text(reply):
    return reply.value.lower().replace(b"lp.", b"")


@pytest.mark.parametrize("protocol", [2, 3])
def test_ranges_compared_with_a_sorted_set(server, protocol):
    client = server.client(protocol)

    @given(fields=st.lists(FIELDS, min_size=0, max_size=12), low=BOUNDS, high=BOUNDS, backwards=st.booleans(), limit=LIMITS)
    def check(fields, low, high, backwards, limit):
        client("DEL", "m", "z")
        for field in fields:
            client("LP.HSET", "m", field, b"value of " + field)
            client("ZADD", "z", 0, field)
        options = ([b"REV"] if backwards else []) + limit
        native = client.request("ZRANGE", "z", low, high, "BYLEX", *options)
        mine = client.request("LP.RANGE", "m", low, high, *options)
        request = (fields, low, high, options)
        if is_error(native) or is_error(mine):
            assert is_error(native) and is_error(mine), f"{request}: expected {native}, got {mine}"
            return
        assert mine == native, f"{request}: expected {native}, got {mine}"
        pairs = client("LP.RANGE", "m", low, high, *options, "WITHVALUES")
        flat = [part for pair in pairs for part in pair] if pairs and isinstance(pairs[0], list) else pairs
        assert flat == [part for field in native for part in (field, b"value of " + field)], request
        whole = client.request("LP.COUNT", "m", low, high) if not backwards else client.request("LP.COUNT", "m", high, low)
        assert whole == (client.request("ZLEXCOUNT", "z", low, high) if not backwards else client.request("ZLEXCOUNT", "z", high, low)), request
        ends = sorted(set(fields))
        for name, wanted in (("LP.FIRST", ends[:1]), ("LP.LAST", ends[-1:])):
            reply = client(name, "m")
            if wanted:
                assert reply == [wanted[0], b"value of " + wanted[0]], (name, request, reply)
            else:
                assert reply in (None, NULL_ARRAY, []), (name, reply)
        if not backwards:
            assert client("LP.REMRANGE", "m", low, high) == client("ZREMRANGEBYLEX", "z", low, high), request
            assert sorted(client("LP.HKEYS", "m")) == client("ZRANGE", "z", "-", "+", "BYLEX"), request
            assert client("EXISTS", "m") == client("EXISTS", "z")

    check()
    client.close()
    server.clients.remove(client)


def test_neighbours_are_not_named(client):
    """Ranges of a map end where the map does, whatever the neighbouring maps hold."""
    for name in ("before", "m", "after"):
        client("LP.HSET", name, "", "1", "\x00", "2", b"\xff" * 40, "3", "x", name)
    client("LP.SET", "s", "string")
    for low, high in ((b"-", b"+"), (b"[", b"+"), (b"-", b"[" + b"\xff" * 50)):
        assert client("LP.RANGE", "m", low, high) == [b"", b"\x00", b"x", b"\xff" * 40]
        assert client("LP.RANGE", "m", high, low, "REV") == [b"\xff" * 40, b"x", b"\x00", b""]
    assert client("LP.REMRANGE", "m", "-", "+") == 4
    assert client("EXISTS", "m") == 0 and client("LP.HLEN", "before") == client("LP.HLEN", "after") == 4
    assert client("LP.GET", "s") == b"string"


def test_a_large_map_by_pages(client):
    """Pages from each last field give all of it once and in order, forwards and backwards."""
    big_map(client, "big", 10_000, size=40)
    for options, low, high in (([], b"-", b"+"), (["REV"], b"+", b"-")):
        seen, at = [], low
        while page := client("LP.RANGE", "big", at, high, *options, "LIMIT", 0, 137):
            seen += page
            at = b"(" + page[-1]
        assert seen == sorted(seen, reverse=bool(options)) and len(seen) == 10_000
    assert client("LP.COUNT", "big", "[field:00001000", "(field:00002000") == 1000
    assert client("LP.RANGE", "big", "-", "+", "LIMIT", 5000, 2) == [b"field:00005000", b"field:00005001"]


def test_ranges_in_scripts_and_transactions(server):
    """The reply's length is set when it is complete: there too, in both protocols."""
    for protocol in (2, 3):
        client = server.client(protocol)
        client("LP.HSET", "m", "a", 1, "b", 2, "c", 3)
        assert client("EVAL", "return redis.call('LP.RANGE', KEYS[1], '(a', '+', 'WITHVALUES')", 1, "m") == [b"b", b"2", b"c", b"3"]
        assert client("EVAL", "return #redis.call('LP.RANGE', KEYS[1], '-', '[b')", 1, "m") == 2
        *_, replies = client.pipe([["MULTI"], ["LP.RANGE", "m", "-", "+"], ["LP.RANGE", "m", "+", "-", "REV", "LIMIT", 1, 1], ["LP.RANGE", "m", "[d", "+"],
                                   ["LP.RANGE", "m", "-", "+", "LIMIT", 3, -1], ["LP.RANGE", "m", "-", "+", "LIMIT", 0, 0],
                                   ["LP.RANGE", "m", "-", "+", "LIMIT", -1, 2], ["EXEC"]])
        assert replies == [[b"a", b"b", b"c"], [b"b"], [], [], [], []]
        client.close()
        server.clients.remove(client)


def test_a_long_range_takes_no_memory_but_the_reply(start):
    """60 MB of values that compress to little: if an output limit closes the client, most of them are never read."""
    server = start(**{"client-output-buffer-limit": "normal 4mb 0 0"})
    with server.client() as client:
        client.load(["LP.HSET", "m", f"f{at}", "v" * 100_000] for at in range(600))
        client("LP.RANGE", "m", "-", "+", "LIMIT", 0, 20, "WITHVALUES")
    before = server.resident(most=True)
    for ends in (["-", "+"], ["+", "-", "REV"]):
        with server.client() as client:
            with pytest.raises(OSError):
                client("LP.RANGE", "m", *ends, "WITHVALUES")
    assert server.resident(most=True) - before < 32 << 20


def test_syntax(client):
    client("LP.HSET", "m", "f", "v")
    for odd in (["LP.RANGE", "m"], ["LP.RANGE", "m", "-"], ["LP.RANGE", "m", "a", "b"], ["LP.RANGE", "m", "-", "+", "BOGUS"],
                ["LP.RANGE", "m", "-", "+", "LIMIT", "1"], ["LP.RANGE", "m", "-", "+", "LIMIT", "a", "1"], ["LP.COUNT", "m", "-"], ["LP.FIRST"],
                ["LP.COUNT", "m", "a", "+"], ["LP.REMRANGE", "m", "-", "b"], ["LP.LAST", "m", "x", "y"]):
        assert is_error(client.request(*odd)), odd
    assert client("LP.RANGE", "none", "-", "+") == [] and client("LP.COUNT", "none", "-", "+") == 0
    assert client("LP.REMRANGE", "none", "-", "+") == 0
