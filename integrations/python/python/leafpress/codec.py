"""Self-describing compressed blocks, and dictionaries with which short records shrink.

>>> from leafpress import codec
>>> block = codec.compress(b"the same words, " * 100, "zstd:3")
>>> len(block) < 60, codec.decompress(block) == b"the same words, " * 100
(True, True)

A block has a header of 14 to 22 bytes with the codec, the dictionary's id, the length and a checksum, so that nothing
else need be kept to read it but the dictionary. Other languages' Leafpress read and write the same blocks.

>>> records = [b'{"id": %d, "name": "user %d", "active": true}' % (n, n * 7) for n in range(1000)]
>>> dictionary = codec.train(records, size=2048)
>>> alone = sum(len(codec.compress(record)) for record in records)
>>> shared = sum(len(codec.compress(record, dictionary=dictionary)) for record in records)
>>> shared < 0.8 * alone
True
>>> block = codec.compress(records[1], dictionary=dictionary)
>>> codec.label(block).dictionary_id == dictionary.id
True
>>> codec.decompress(block, [dictionary])
b'{"id": 1, "name": "user 7", "active": true}'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Optional

from . import _leafpress
from ._leafpress import Dictionary, compress, decompress, train

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Availability", "Dictionary", "Label", "available", "compress", "decompress", "label", "train"]


class Label(NamedTuple):
    """The header of a block."""

    family: str
    """The codec without its settings: "zstd", "lz4", "deflate", or "none" for data that is stored uncompressed."""
    dictionary_id: Optional[int]
    """The id of the dictionary that it needs."""
    raw_bytes: int
    """The length of its data."""


class Availability(NamedTuple):
    """A codec at a usual setting, and whether it can run here."""

    name: str
    """Its name."""
    engine: Optional[str]
    """Its engine; None if there is none."""
    library: Optional[str]
    """The library behind it and its version."""
    reason: Optional[str]
    """The reason why it cannot run, and the remedy."""


def label(block: Buffer) -> Label:
    """The header of a block. Nothing is decoded or verified.

    >>> codec.label(codec.compress(b"x" * 1000, "lz4"))
    Label(family='lz4', dictionary_id=None, raw_bytes=1000)
    """
    return Label(*_leafpress._label(block))


def available() -> list[Availability]:
    """Every codec at one or two usual settings, and whether it can run here.

    >>> [one.name for one in codec.available() if one.engine][:2]
    ['none', 'lz4']
    """
    return [Availability(*codec) for codec in _leafpress._available()]
