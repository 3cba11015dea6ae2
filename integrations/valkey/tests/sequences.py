"""Random commands for `twins.compare`: few keys, fields and values, so that they meet, with the awkward ones among
them."""
from hypothesis import strategies as st

from twins import NEWER, Key

KEYS = st.sampled_from(["a", "a", "a", "b", "c"]).map(Key)
FIELDS = st.one_of(
    st.sampled_from([b"f", b"g", b"n"]),
    st.sampled_from([b"", b"f", b"g", b"fg", b"f\x00", b"\x00", b"\xff", b"\xff\xff", b"field:10", b"field:2", b"n", b"x" * 300, b"\r\n"]),
    st.binary(max_size=3))
NUMBERS = st.sampled_from([b"0", b"1", b"-1", b"10", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808", b"3.5",
                           b"-0.1", b"1e5", b"5.0e3", b"abc", b"", b" 1", b"1 ", b"+1", b"0x10", b"inf", b"nan", b"1e400", b"007", b"1\x002",
                           b"0.30000000000000004", b"3.0e-10", b"123456789.123456789"])
VALUES = st.one_of(
    st.sampled_from([b"", b"v", b"value", b"\x00", b"\xff" * 9, b"a" * 65, b"v" * 1000, b"long" * 3000, b"{\"name\":\"x\"}" * 20]),
    NUMBERS, st.binary(max_size=8))
COUNTS = st.sampled_from([b"0", b"1", b"2", b"3", b"-1", b"-3", b"10", b"x", b"", b"9223372036854775807", b"-9223372036854775808"])
INDICES = st.sampled_from([b"0", b"1", b"-1", b"-2", b"5", b"100", b"-100", b"3", b"x"])


def _command(name, *parts):
    return st.tuples(*[part if isinstance(part, st.SearchStrategy) else st.just(part) for part in parts]).map(
        lambda chosen: [name, *(each for part in chosen for each in (part if isinstance(part, list) else [part]))])


def _some(strategy, least=1, most=4):
    return st.lists(strategy, min_size=least, max_size=most)


_PAIRS = st.lists(st.tuples(FIELDS, VALUES), min_size=1, max_size=5).map(lambda pairs: [part for pair in pairs for part in pair])
_KEY_PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3).map(lambda pairs: [part for pair in pairs for part in pair])
_SOME_FIELDS = st.one_of(
    _some(FIELDS).map(lambda fields: ["FIELDS", len(fields), *fields]),
    st.sampled_from([["FIELDS", "0", "f"], ["FIELDS", "2", "f"], ["FIELDS", "x", "f"], ["FIELD", "1", "f"], ["fields", "1", "f"]]))
# A time far enough off that no test sees it pass, or one that has passed.
_EXPIRES = st.sampled_from([["EX", "1000"], ["PX", "1000000"], ["EXAT", "99999999999"], ["PXAT", "99999999999999"], ["EX", "0"], ["EX", "-1"],
                            ["PX", "x"], ["EX"], ["EXAT", "1"], ["KEEPTTL"], ["EX", "10", "PX", "10"], ["EX", "9223372036854775807"],
                            ["KEEPTTL", "EX", "10"], ["ex", "1000"]])
_CONDITIONS = st.sampled_from([[], ["NX"], ["XX"], ["GET"], ["NX", "GET"], ["XX", "GET"], ["NX", "XX"], ["nx"], ["BOGUS"]])
_EQUAL = st.one_of(st.just(["IFEQ"]), VALUES.map(lambda value: ["IFEQ", value]), st.just(["ifeq", b"v", "GET"]))
_SET_OPTIONS = st.one_of(st.just([]), _EXPIRES, _CONDITIONS, _EQUAL,
                         st.tuples(_EXPIRES, st.one_of(_CONDITIONS, _EQUAL)).map(lambda both: both[0] + both[1]))
_TIMES = st.sampled_from([b"1000", b"100000000", b"0", b"-1", b"x", b"9223372036854775807"])
_GETEX_OPTIONS = st.one_of(st.just([]), st.just(["PERSIST"]), st.just(["PERSIST", "EX", "10"]), _EXPIRES)
_LCS_OPTIONS = st.sampled_from([[], ["LEN"], ["IDX"], ["IDX", "WITHMATCHLEN"], ["IDX", "MINMATCHLEN", "2"], ["idx", "minmatchlen", "x"],
                                ["IDX", "LEN"], ["MINMATCHLEN"], ["MINMATCHLEN", "-1", "IDX", "WITHMATCHLEN"], ["BOGUS"]])

MAPS = st.one_of(
    _command("HSET", KEYS, _PAIRS), _command("HSET", KEYS, _PAIRS), _command("HSET", KEYS, _PAIRS), _command("HSET", KEYS, FIELDS),
    _command("HMSET", KEYS, _PAIRS), _command("HMSET", KEYS, FIELDS), _command("HGETDEL", KEYS, _SOME_FIELDS),
    _command("HSETNX", KEYS, FIELDS, VALUES), _command("HGET", KEYS, FIELDS), _command("HMGET", KEYS, _some(FIELDS, 0)),
    _command("HGETALL", KEYS), _command("HDEL", KEYS, _some(FIELDS, 0)), _command("HEXISTS", KEYS, FIELDS), _command("HLEN", KEYS),
    _command("HSTRLEN", KEYS, FIELDS), _command("HKEYS", KEYS), _command("HVALS", KEYS),
    _command("HINCRBY", KEYS, FIELDS, NUMBERS), _command("HINCRBYFLOAT", KEYS, FIELDS, NUMBERS),
    _command("HRANDFIELD", KEYS), _command("HRANDFIELD", KEYS, COUNTS), _command("HRANDFIELD", KEYS, COUNTS, st.sampled_from(["WITHVALUES", "withvalues", "NOT"])))
STRINGS = st.one_of(
    _command("SET", KEYS, VALUES), _command("SET", KEYS, VALUES, _SET_OPTIONS), _command("SET", KEYS), _command("GET", KEYS),
    _command("MGET", _some(KEYS, 0)), _command("MSET", _KEY_PAIRS), _command("MSET", KEYS), _command("STRLEN", KEYS),
    _command("GETRANGE", KEYS, INDICES, INDICES), _command("APPEND", KEYS, VALUES),
    _command("SUBSTR", KEYS, INDICES, INDICES), _command("SETRANGE", KEYS, INDICES, VALUES), _command("MSETNX", _KEY_PAIRS),
    _command("SETNX", KEYS, VALUES), _command("SETEX", KEYS, _TIMES, VALUES), _command("PSETEX", KEYS, _TIMES, VALUES),
    _command("GETSET", KEYS, VALUES), _command("GETDEL", KEYS), _command("GETEX", KEYS, _GETEX_OPTIONS), _command("DELIFEQ", KEYS, VALUES),
    _command("INCR", KEYS), _command("DECR", KEYS), _command("INCRBY", KEYS, NUMBERS), _command("DECRBY", KEYS, NUMBERS),
    _command("INCRBYFLOAT", KEYS, NUMBERS), _command("LCS", KEYS, KEYS, _LCS_OPTIONS),
    # A count that is one too large would take an option for a key, which both twins would share.
    st.tuples(_KEY_PAIRS, st.sampled_from([0, 0, 0, 100, -1]), _SET_OPTIONS).map(
        lambda parts: ["MSETEX", len(parts[0]) // 2 + parts[1], *parts[0], *parts[2]]))
# Native commands without a twin, which make strings native.
BITS = st.one_of(
    _command("SETBIT", KEYS, st.sampled_from([b"0", b"7", b"100", b"-1", b"x"]), st.sampled_from([b"0", b"1", b"2"])),
    _command("BITOP", st.sampled_from(["AND", "OR", "XOR"]), KEYS, _some(KEYS, 1, 3)), _command("BITOP", "NOT", KEYS, KEYS),
    _command("BITFIELD", KEYS, st.sampled_from([["GET", "u8", "0"], ["SET", "u8", "0", "65"], ["INCRBY", "i5", "100", "1"], ["BOGUS"]])),
    _command("PFADD", KEYS, _some(VALUES, 0)), _command("PFMERGE", KEYS, _some(KEYS, 0)), _command("PFCOUNT", _some(KEYS)),
    _command("GETBIT", KEYS, INDICES), _command("BITCOUNT", KEYS), _command("BITPOS", KEYS, st.sampled_from([b"0", b"1"])),
    _command("BITCOUNT", KEYS, INDICES, INDICES), _command("BITPOS", KEYS, st.sampled_from([b"0", b"1"]), INDICES),
    _command("BITFIELD_RO", KEYS, _some(st.tuples(st.sampled_from(["GET", "GET", "GET", "get", "SET", "OVERFLOW"]),
                                                  st.sampled_from(["u1", "u8", "i8", "i5", "u63", "i64", "u64", "i0", "i65", "8", ""]),
                                                  st.sampled_from(["0", "1", "7", "#0", "#3", "100", "#90000000", "-1", "4294967295", "x", "#"])).map(list), 0, 3)
             .map(lambda clauses: [part for clause in clauses for part in clause])))
# Those of the expiry of fields, which make maps native where they set one.
_FIELD_OPTIONS = st.sampled_from([[], [], ["NX"], ["XX"], ["GT"], ["BOGUS"]])
_FIELD_PAIRS = _some(st.tuples(FIELDS, VALUES)).map(lambda pairs: ["FIELDS", len(pairs), *(part for pair in pairs for part in pair)])
FIELD_EXPIRY = st.one_of(
    _command("HEXPIREAT", KEYS, st.sampled_from(["99999999999", "1", "x"]), _FIELD_OPTIONS, _SOME_FIELDS),
    _command("HPEXPIRE", KEYS, st.sampled_from(["100000000", "0", "-1"]), _FIELD_OPTIONS, _SOME_FIELDS),
    _command("HEXPIRE", KEYS, st.sampled_from(["1000", "0", "-1", "x"]), _FIELD_OPTIONS, _SOME_FIELDS),
    _command("HPEXPIREAT", KEYS, st.sampled_from(["99999999999999", "1", "x"]), _FIELD_OPTIONS, _SOME_FIELDS),
    _command("HEXPIRETIME", KEYS, _SOME_FIELDS), _command("HPEXPIRETIME", KEYS, _SOME_FIELDS), _command("HPERSIST", KEYS, _SOME_FIELDS),
    _command("HTTL", KEYS, _SOME_FIELDS), _command("HPTTL", KEYS, _SOME_FIELDS),
    _command("HGETEX", KEYS, _GETEX_OPTIONS, _SOME_FIELDS),
    _command("HSETEX", KEYS, st.sampled_from([[], ["FNX"], ["FXX"]]), st.one_of(st.just([]), _EXPIRES), st.one_of(_FIELD_PAIRS, _SOME_FIELDS)))
KEYSPACE = st.one_of(
    _command("DEL", _some(KEYS)), _command("UNLINK", KEYS), _command("EXISTS", _some(KEYS)), _command("RENAME", KEYS, KEYS),
    _command("RENAMENX", KEYS, KEYS), _command("COPY", KEYS, KEYS), _command("COPY", KEYS, KEYS, "REPLACE"), _command("TOUCH", KEYS),
    _command("COPY", KEYS, KEYS, "DB", st.sampled_from(["0", "5", "x"]), st.sampled_from([[], ["REPLACE"]])),
    _command("EXPIRE", KEYS, st.sampled_from(["1000", "-1", "0"])), _command("PERSIST", KEYS), _command("EXPIRETIME", KEYS),
    _command("MOVE", KEYS, "5"),
    # Neither type can be sorted; a key that is not there leaves an empty result.
    _command("SORT", KEYS, st.sampled_from([[], ["ALPHA"], ["LIMIT", "0", "x"], ["BOGUS"]])), _command("SORT", KEYS, "STORE", KEYS),
    _command("SORT_RO", KEYS, st.sampled_from([[], ["DESC"]])))
TYPES = _command("TYPE", KEYS)
# All fields in one step: a native table is scanned whole where the count is far above its fields.
SCANS = _command("HSCAN", KEYS, st.sampled_from(["0", "0", "x"]), "COUNT", st.sampled_from(["10000", "0", "x"]),
                 st.sampled_from([[], ["MATCH", "*"], ["MATCH", "f*"], ["match", "[^f]"], ["MATCH", "field:??"], ["BOGUS"]]))


def _sequences(*strategies):
    """Short ones, which shrink to what matters, and long ones, where much meets much."""
    each = st.one_of(*strategies)
    return st.one_of(st.lists(each, min_size=1, max_size=25), st.lists(each, min_size=20, max_size=80))


HASH_SEQUENCES = _sequences(MAPS, MAPS, MAPS, KEYSPACE)
STRING_SEQUENCES = _sequences(STRINGS, STRINGS, STRINGS, KEYSPACE)
MIXED_SEQUENCES = _sequences(MAPS, STRINGS, KEYSPACE)
TRANSPARENT_SEQUENCES = _sequences(MAPS, MAPS, STRINGS, BITS, FIELD_EXPIRY, SCANS, KEYSPACE, TYPES)


def known(commands, kind):
    """Those commands that a server knows."""
    return commands if kind.name == "valkey-9.1" else [command for command in commands if command[0] not in NEWER]
