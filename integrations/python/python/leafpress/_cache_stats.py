"""Statistics of a cache."""

from __future__ import annotations

from typing import NamedTuple, Optional


class DiskStats(NamedTuple):
    """A snapshot of a cache's disk tier. Counts begin with the cache."""

    place: str
    """A one-line description of the tier and its I/O."""
    capacity_bytes: int
    """Its capacity."""
    used_bytes: int
    """Bytes of it in use. Records of a key that has a newer one are counted until a merge."""
    records: int
    """Records in use, counted in the same way."""
    runs: int
    """Runs that were written, each at once."""
    super_leaves: int
    """Key ranges of the runs."""
    index_bytes: int
    """Memory of the disk tier's index."""
    waiting_bytes: int
    """Memory of records that wait to be written."""
    waiting_batches: int
    """Full batches of such records, at most two."""
    is_stalled: bool
    """Whether no records are accepted now because no write completed for too long."""
    lookups: int
    """Lookups of keys that were not in memory."""
    hits: int
    """Of these, those that found their key on disk, or on its way there."""
    blocks_read: int
    """Blocks of 4 KiB read by lookups."""
    read_errors: int
    """Reads of the device that failed. The read counts as a miss."""
    damaged: int
    """Pages whose content differs from what was written."""
    admitted: int
    """Records that were moved from memory to disk."""
    admitted_bytes: int
    """Bytes of their keys and values."""
    clean: int
    """Records that left memory and were on disk already."""
    dropped: int
    """Records that left memory and were not accepted: too long, or too much was being written or waiting."""
    tombstones: int
    """Marks in memory instead of dropped records, so that no older version is found on disk."""
    written_bytes: int
    """Bytes written to the device."""
    write_errors: int
    """Runs that could not be written."""
    last_error: str
    """The error of the last of them; empty if there was none."""
    merges: int
    """Merges of runs."""
    runs_dropped: int
    """Runs that were evicted or dropped."""
    records_dropped: int
    """Records in those."""
    left_out: int
    """Records that merges dropped because the capacity was nearly used."""
    recovered_records: int
    """Records of runs that were recovered after a kill, including those that reads refuse because they may be stale."""
    is_recoverable: bool
    """Whether the records on disk would be recovered if the process were killed now."""
    log_errors: int
    """Failed writes of the log that this needs."""
    has_failed: bool
    """Whether the tier was disabled because writes failed repeatedly. The cache continues in memory."""


class CacheStats(NamedTuple):
    """A snapshot of a cache. Counts begin with the cache."""

    memory_bytes: int
    """The memory bound."""
    bytes_held: int
    """All memory that it holds now."""
    peak_bytes: int
    """The highest value seen of bytes_held."""
    eviction_bytes: int
    """Memory of the eviction policy, a part of bytes_held."""
    records: int
    """Records in memory, including expired ones that have not been removed yet."""
    user_bytes: int
    """Bytes of their keys and values, and four more for each that expires."""
    hits: int
    """Reads that found their key."""
    disk_hits: int
    """Of these, those that found it on disk, or on its way there."""
    misses: int
    """Reads that did not."""
    stale: int
    """Of the misses, those that got an expired value, because another caller was loading the key."""
    inserts: int
    """Insertions."""
    inserted_bytes: int
    """Bytes of the keys and values that were inserted."""
    removes: int
    """Calls to remove a key."""
    evicted: int
    """Records that were evicted."""
    expired: int
    """Records that expired."""
    too_large: int
    """Values that were not kept because they exceed an eighth of the memory."""
    damaged: int
    """Reads of records that could not be decoded, which count as misses."""
    leaves_visited: int
    """Leaves that were visited for eviction or expiry."""
    records_visited: int
    """Records in those."""
    eviction_errors: int
    """Leaves from which nothing could be evicted."""
    promoted: int
    """Records that returned from disk to memory."""
    background_panics: int
    """Failures of background work by a bug. The cache continues."""
    background_threads_ended: int
    """Background threads that have ended because all their work failed in this way."""
    disk: Optional[DiskStats]
    """The disk tier, if there is one."""

    @property
    def hit_ratio(self) -> float:
        """The share of reads that found their key; 0 if there were none."""
        reads = self.hits + self.misses
        return self.hits / reads if reads else 0.0
