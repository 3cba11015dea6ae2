"""What trees say of themselves."""

from __future__ import annotations

from typing import NamedTuple


class TreeStats(NamedTuple):
    """What a tree holds and did, from Tree.stats(). Counts of what it did are over its life.

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
    """Indexes that lead past inner nodes."""
    landing_bytes: int
    """Landing buffers: what was written lately."""
    large_value_bytes: int
    """Values that stand outside of leaves."""
    hot_bytes: int
    """Uncompressed copies of records that are read much, with codec="auto"."""
    dictionary_bytes: int
    """Dictionaries, and what codecs make of them."""
    retired_bytes: int
    """What was replaced and is not given back yet."""
    free_bytes: int
    """Holes in the tree's heap."""
    thread_bytes: int
    """What is kept for each thread."""
    fixed_bytes: int
    """The tree's fixed parts."""
    leaves: int
    """Leaves."""
    frames: int
    """Frames in them: what is compressed together."""
    landing_buffers: int
    """Leaves that have a landing buffer now."""
    inner_nodes: int
    """Inner nodes."""
    depth: int
    """Levels from the root to a leaf, 1 for a single leaf."""
    dictionary_id: int
    """The number of the dictionary that is compressed with now, 0 for none."""
    frame_limit_bytes: int
    """Raw bytes at which a frame is closed now, 1 when each record is one: given, or chosen."""
    leaf_limit_bytes: int
    """Raw bytes at which a leaf splits now: given, or chosen."""
    limits_reason: str
    """Why these two are what they are, in words."""
    hot_records: int
    """Records of which there is an uncompressed copy, with codec="auto"."""
    warm_leaves: int
    """Leaves compressed with the tree's codec."""
    cold_leaves: int
    """Leaves compressed more, with codec="auto"."""
    records_heated: int
    """Records that became hot."""
    leaves_warmed: int
    """Leaves that became warm because they were read."""
    leaves_cooled: int
    """Leaves that became cold."""
    temperature_reason: str
    """What each temperature costs, in words; empty without codec="auto"."""
    gets: int
    """Reads of one record."""
    get_frames_decoded: int
    """Frames that these decoded."""
    get_bytes_decoded: int
    """Raw bytes that these decoded."""
    get_landing_hits: int
    """Reads answered from a landing buffer."""
    get_hot_hits: int
    """Reads answered from a hot record's copy."""
    puts: int
    """Writes of any kind."""
    bulk_loaded: int
    """Those of them that came in key order and went into new leaves at once."""
    put_bytes: int
    """Bytes of the keys and values that were written."""
    copied_bytes: int
    """Bytes that writes, and all upkeep since, wrote in the tree."""
    compressed_bytes: int
    """Raw bytes that were compressed for it."""
    removes: int
    """Removals."""
    splits: int
    """Leaves that were split."""
    merges: int
    """Leaves that were merged."""
    bg_passes: int
    """Times that a background thread woke to work."""
    bg_compactions: int
    """Leaves compacted in the background."""
    bg_errors: int
    """Of these, those that failed."""
    bg_panics: int
    """Pieces of background work that were given up."""
    bg_threads_ended: int
    """Background threads that have ended because all they did failed."""
    engine_name: str
    """The program that compresses."""

    @property
    def held_per_user_byte(self) -> float:
        """Bytes held for each byte of keys and values: at 1 nothing is saved, less is better; 0 for an empty tree."""
        return self.bytes_held / self.user_bytes if self.user_bytes else 0.0
