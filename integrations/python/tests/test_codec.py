"""codec: sealed blocks and dictionaries."""

import copy
import pickle
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leafpress
from leafpress import codec

RECORDS = [b'{"id": %d, "name": "user %d", "active": true}' % (n, n * 7) for n in range(2000)]

FROZEN = [
    ("none", "4c505301003ea4cad8cc7701539d7468652073616d6520776f7264732c207468652073616d6520776f7264732c207468652073616d6520776f7264732c207468652073616d6520776f726473"),
    ("lz4", "4c505301013e6623c0860f3732bbff017468652073616d6520776f7264732c2010001bc0"),
    ("lz4", "4c505301813e04030201fb2b38681c502e550a0e001b2c1e000f10000dc0"),
    ("zstd", "4c505301023ec75e72ce545c0cb1807468652073616d6520776f7264732c2001001e732e01"),
    ("zstd", "4c505301823e0403020131cf8a4139e329ba082c0300337108aabb906710"),
    ("deflate", "4c505301033e1bc245ef151e07572bc94855284ecc4d5528cf2f4a29d6512821890f00"),
]
"""The library's own: tests/codec/sealed.rs."""


def test_what_earlier_versions_wrote_is_read():
    dictionary = codec.Dictionary(b"all of the same words", 0x01020304)
    for family, image in FROZEN:
        block = bytes.fromhex(image)
        assert codec.label(block).family == family
        assert codec.decompress(block, dictionary) == b", ".join([b"the same words"] * 4)


@pytest.mark.parametrize("name", ["none", "lz4", "lz4:fast=4", "lz4:hc=9", "zstd:1", "zstd:3", "zstd:19", "zstd:-5", "deflate:6"])
@pytest.mark.parametrize("data", [b"", b"x", b"the same words " * 1000, random.Random(1).randbytes(100_000), b"\0" * 3_000_000])
def test_blocks_return(name, data):
    for given in [data, bytearray(data), memoryview(data)]:
        block = codec.compress(given, name)
        assert type(block) is bytes and len(block) <= len(data) + 22
        assert codec.decompress(block) == codec.decompress(memoryview(block)) == data
        assert codec.label(block).raw_bytes == len(data)


@pytest.mark.parametrize("name", ["lz4", "zstd:3"])
def test_a_dictionary_is_needed_to_read(name):
    dictionary = codec.train(RECORDS, size="4KiB", codec=name)
    other = codec.Dictionary(b"other" * 100)
    assert len(dictionary) <= 4096 and len(dictionary.to_bytes()) == len(bytes(dictionary)) == len(dictionary)
    block = codec.compress(RECORDS[5], name, dictionary)
    assert len(block) < len(codec.compress(RECORDS[5], name))
    assert codec.label(block).dictionary_id == dictionary.id
    for given in [dictionary, [other, dictionary], (dictionary,), dictionary.to_bytes()]:
        assert codec.decompress(block, given) == RECORDS[5]
    for given in [None, other, [], [other]]:
        with pytest.raises(leafpress.CorruptBlock, match=f"{dictionary.id:#010x}"):
            codec.decompress(block, given)
    with pytest.raises(leafpress.CorruptBlock):
        codec.decompress(block, codec.Dictionary(b"wrong" * 100, dictionary.id))


def test_dictionaries_are_values():
    dictionary = codec.train(RECORDS, 1024)
    assert dictionary == pickle.loads(pickle.dumps(dictionary)) == copy.copy(dictionary) == codec.Dictionary(dictionary.to_bytes())
    assert hash(dictionary) == hash(codec.Dictionary(dictionary.to_bytes()))
    assert dictionary != codec.Dictionary(dictionary.to_bytes(), id=5) and dictionary != "x"
    assert "1024 bytes" in repr(dictionary) or str(len(dictionary)) in repr(dictionary)


def test_a_trained_dictionary_serves_a_tree():
    dictionary = codec.train(RECORDS, 4096, "lz4")
    tree = leafpress.Tree({b"%d" % n: record for n, record in enumerate(RECORDS)}, codec="lz4", dictionary=dictionary)
    assert tree[b"5"] == RECORDS[5]


def test_checks_a_bound_before_allocating():
    block = codec.compress(bytes(1 << 20))
    assert codec.decompress(block, max_bytes="1MiB") == bytes(1 << 20)
    for most in [(1 << 20) - 1, 0, "1KB"]:
        with pytest.raises(leafpress.ValueTooLong):
            codec.decompress(block, max_bytes=most)
    with pytest.raises(TypeError):
        codec.decompress(block, max_bytes=1.5)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_are_a_block_by_chance(data):
    for hostile in [data, b"LPS\x01" + data]:
        with pytest.raises(leafpress.CorruptBlock):
            codec.decompress(hostile)


def test_damage_is_found():
    block = codec.compress(b"the same words " * 50)
    for at in range(len(block)):
        for bit in range(8):
            damaged = bytearray(block)
            damaged[at] ^= 1 << bit
            with pytest.raises((leafpress.CorruptBlock, leafpress.ValueTooLong)):
                codec.decompress(damaged, max_bytes="1MiB")
        with pytest.raises(leafpress.CorruptBlock):
            codec.decompress(block[:at])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: codec.compress("text"), TypeError),
        (lambda: codec.compress(5), TypeError),
        (lambda: codec.compress(b"", "lz5"), leafpress.InvalidOption),
        (lambda: codec.compress(b"", 5), TypeError),
        (lambda: codec.compress(b"", "auto"), leafpress.Error),
        (lambda: codec.compress(b"", dictionary=5), TypeError),
        (lambda: codec.compress(b"", dictionary="text"), TypeError),
        (lambda: codec.decompress(b"", 5), TypeError),
        (lambda: codec.decompress(b"", [5]), TypeError),
        (lambda: codec.train([]), leafpress.InvalidOption),
        (lambda: codec.train([b"x"] * 100), leafpress.InvalidOption),
        (lambda: codec.train(b"bytes" * 1000), TypeError),
        (lambda: codec.train(["text"] * 10), TypeError),
        (lambda: codec.train(5), TypeError),
        (lambda: codec.train(RECORDS, 5), leafpress.InvalidOption),
        (lambda: codec.train(RECORDS, "1TiB"), leafpress.InvalidOption),
        (lambda: codec.train(RECORDS, codec="deflate:1"), leafpress.InvalidOption),
        (lambda: codec.Dictionary(b""), leafpress.InvalidOption),
        (lambda: codec.Dictionary("text"), TypeError),
        (lambda: codec.Dictionary(b"x", -1), OverflowError),
        (lambda: codec.Dictionary(b"x", 1, "zstd:3"), leafpress.InvalidOption),
        (lambda: codec.Dictionary(b"x", codec="zstd:99"), leafpress.InvalidOption),
        (lambda: codec.label(b"x"), leafpress.CorruptBlock),
    ],
)
def test_reports_invalid_arguments(call, error):
    with pytest.raises(error):
        call()


def test_threads_share_codecs():
    failures = []

    def work(seed):
        data = random.Random(seed).randbytes(5000) * 3
        for name in ["lz4", "zstd:1", "deflate:1"] * 20:
            if codec.decompress(codec.compress(data, name)) != data:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_codecs_are_listed():
    listed = {available.name: available for available in codec.available()}
    name, engine, library, reason = listed["zstd:3"]
    assert name == "zstd:3" and engine and library and reason is None
    assert all(available.engine or available.reason for available in listed.values())
