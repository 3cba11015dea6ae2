"""Statistics of a tree."""

from __future__ import annotations

from typing import NamedTuple


class TreeStats(NamedTuple):
    """A tree's statistics, from Tree.stats(). Counts of operations cover its whole life.

    `bytes_held` is the sum of the eleven fields behind it that end in `_bytes`.
    """

    records: int
    """Records in the tree."""
    user_bytes: int
    """Bytes of their keys and values."""
    bytes_held: int
    """All memory that the tree holds."""
    leaf_bytes: int
    """Leaves: headers, keys and frames."""
    inner_bytes: int
    """Inner nodes."""
    interpolation_bytes: int
    """Interpolation indexes."""
    landing_bytes: int
    """Landing buffers of recent writes."""
    large_value_bytes: int
    """Values that are stored outside of leaves."""
    hot_bytes: int
    """Uncompressed copies of records that are read often, with codec="auto"."""
    dictionary_bytes: int
    """Dictionaries, and the codecs' tables for them."""
    retired_bytes: int
    """Garbage that has not been freed yet."""
    free_bytes: int
    """Free blocks of the tree's heap."""
    thread_bytes: int
    """Per-thread memory."""
    fixed_bytes: int
    """The tree's fixed parts."""
    leaves: int
    """Leaves."""
    frames: int
    """Frames in them: the units of compression."""
    landing_buffers: int
    """Leaves that have a landing buffer now."""
    inner_nodes: int
    """Inner nodes."""
    depth: int
    """Levels from the root to a leaf, 1 for a single leaf."""
    dictionary_id: int
    """The number of the current dictionary, 0 for none."""
    frame_limit_bytes: int
    """Raw bytes at which a frame is closed now, 1 if each record is one: set, or chosen."""
    leaf_limit_bytes: int
    """Raw bytes at which a leaf splits now: set, or chosen."""
    limits_reason: str
    """The reason for these two sizes."""
    hot_records: int
    """Records with an uncompressed copy, with codec="auto"."""
    warm_leaves: int
    """Leaves compressed with the tree's codec."""
    cold_leaves: int
    """Leaves compressed with a stronger codec, with codec="auto"."""
    records_heated: int
    """Records that became hot."""
    leaves_warmed: int
    """Leaves that became warm by reads."""
    leaves_cooled: int
    """Leaves that became cold."""
    temperature_reason: str
    """The cost of each temperature, as text; empty without codec="auto"."""
    gets: int
    """Reads of one record."""
    get_frames_decoded: int
    """Frames decoded by them."""
    get_bytes_decoded: int
    """Raw bytes decoded by them."""
    get_landing_hits: int
    """Reads answered from a landing buffer."""
    get_hot_hits: int
    """Reads answered from a hot record's copy."""
    puts: int
    """Writes of any kind."""
    bulk_loaded: int
    """Of these, those in key order that were packed into new leaves at once."""
    put_bytes: int
    """Bytes of the keys and values that were written."""
    copied_bytes: int
    """Bytes that writes, and the upkeep for them, wrote in the tree."""
    compressed_bytes: int
    """Raw bytes that were compressed for it."""
    removes: int
    """Removals."""
    splits: int
    """Leaves that were split."""
    merges: int
    """Leaves that were merged."""
    bg_passes: int
    """Wake-ups of background threads."""
    bg_compactions: int
    """Leaves compacted in the background."""
    bg_errors: int
    """Of these, those that failed."""
    bg_panics: int
    """Tasks of background work that were abandoned."""
    bg_threads_ended: int
    """Background threads that have ended because all their work failed."""
    engine_name: str
    """The compression engine."""

    @property
    def held_per_user_byte(self) -> float:
        """Bytes held for each byte of keys and values: at 1 nothing is saved, less is better; 0 for an empty tree."""
        return self.bytes_held / self.user_bytes if self.user_bytes else 0.0
