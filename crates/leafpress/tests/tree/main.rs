//! Tests of the tree, one behaviour per module.

#[path = "../support/mod.rs"]
mod support;

mod background_panics;
mod bulk;
mod calm;
mod codec_choice;
mod dictionary_of_empty_leaf;
mod dictionary_pool;
mod drains;
mod drift;
mod empty;
mod faults;
mod full_frames;
mod get_many;
mod heap;
mod hostile_frames;
mod large_overwrites;
mod len_under_writes;
mod limits;
mod linearizable;
mod many_tiny_records;
mod map_interface;
mod model;
mod model_codec_switches;
mod model_shapes;
mod near;
mod overwrites;
mod reclaim;
mod remove_range;
mod sample_range;
mod scan_back_over_big_frames;
mod scan_bounds_large_values;
mod separators;
mod shards_keep_neighbours;
mod shortcuts;
mod temperature;
mod thread_exit;
mod threads;
mod trains_by_its_size;
mod updates;
mod upkeep_by_caller;
mod value_len;
