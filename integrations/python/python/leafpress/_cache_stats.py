"""What a cache holds and what it did."""

from __future__ import annotations

from typing import NamedTuple, Optional


class DiskStats(NamedTuple):
    """A snapshot of a cache's disk tier. Counts are from when the cache was made."""

    place: str
    """What it is and how it is read, in a line for people."""
    capacity_bytes: int
    """What it may use."""
    used_bytes: int
    """What is in use of that. Records of a key that has a newer one are counted until a merge."""
    records: int
    """Records in use, counted so too."""
    runs: int
    """Pieces that were written, each in one go."""
    super_leaves: int
    """Ranges of keys that the pieces are of."""
    index_bytes: int
    """Memory for what is on disk."""
    waiting_bytes: int
    """Memory of records that wait to be written."""
    waiting_batches: int
    """Full batches of such records, two at most."""
    is_stalled: bool
    """Whether nothing is taken in just now because nothing was written for too long."""
    lookups: int
    """Times that a key was looked for here, since it was not in memory."""
    hits: int
    """Of these, those that were found here, or on their way here."""
    blocks_read: int
    """Blocks of 4 KiB that lookups have read."""
    read_errors: int
    """Reads of the device that failed. What was to be read counts as missed."""
    damaged: int
    """Pages that were not what had been written there."""
    admitted: int
    """Records that left memory for the disk."""
    admitted_bytes: int
    """Bytes of their keys and values."""
    clean: int
    """Records that left memory and were here already."""
    dropped: int
    """Records that left memory and were not taken in: too long, or too much was written or waited."""
    tombstones: int
    """Marks in memory in the place of dropped records, so that nothing older is found here."""
    written_bytes: int
    """Bytes written to the device."""
    write_errors: int
    """Pieces that could not be written."""
    last_error: str
    """What the last of them said; empty where there was none."""
    merges: int
    """Merges of pieces."""
    runs_dropped: int
    """Pieces that made room, or were forgotten."""
    records_dropped: int
    """Records in those."""
    left_out: int
    """Records that merges left out because the room was nearly used."""
    recovered_records: int
    """Records of pieces that were found again after a kill, those included that reads refuse since they may be out of
    date."""
    is_recoverable: bool
    """Whether what is on disk would be found again if the process were killed now."""
    log_errors: int
    """Times that the log could not be written by which it would be."""
    has_failed: bool
    """Whether the tier was given up because writes failed again and again. The cache goes on in memory."""


class CacheStats(NamedTuple):
    """A snapshot of a cache. Counts are from when the cache was made."""

    memory_bytes: int
    """What it may hold."""
    bytes_held: int
    """All that it holds now."""
    peak_bytes: int
    """The most that it was ever seen to hold."""
    eviction_bytes: int
    """What eviction works with, a part of bytes_held."""
    records: int
    """Records in memory, those included whose time is over and that have not left yet."""
    user_bytes: int
    """Bytes of their keys and values, and four more for each that expires."""
    hits: int
    """Reads that found their key."""
    disk_hits: int
    """Of these, those that found it on disk, or on its way there."""
    misses: int
    """Reads that did not."""
    stale: int
    """Of those that did not, the ones that got a value whose time was over, because another was loading it."""
    inserts: int
    """Insertions."""
    inserted_bytes: int
    """Bytes of the keys and values that were inserted."""
    removes: int
    """Calls to remove a key."""
    evicted: int
    """Records that made room for others."""
    expired: int
    """Records that left because their time was over."""
    too_large: int
    """Values that were not kept because they hold more than an eighth of the memory."""
    damaged: int
    """Reads of records that could not be decoded, which count as misses."""
    leaves_visited: int
    """Leaves that were looked at to make room or for what was over."""
    records_visited: int
    """Records in those."""
    eviction_errors: int
    """Leaves that nothing could be taken out of."""
    promoted: int
    """Records that came back to memory from the disk."""
    background_panics: int
    """Times that background work failed by a bug. The cache goes on."""
    background_threads_ended: int
    """Background threads that have ended because all they did failed so."""
    disk: Optional[DiskStats]
    """The disk tier, where there is one."""

    @property
    def hit_ratio(self) -> float:
        """Part of the reads that found their key; 0 where there were none."""
        reads = self.hits + self.misses
        return self.hits / reads if reads else 0.0
