// What the block cache's shim offers the Rust library (core/src/secondary_cache/block_cache.rs). None of it throws.
#pragma once

#include "secondary_cache_abi.h"

extern "C" {

struct LeafpressBlockCache;

// Returns null if an option is invalid: `sink` receives the error.
LeafpressBlockCache* leafpress_shim_block_cache_new(LeafpressView options, LeafpressSink sink, void* context);
void leafpress_shim_block_cache_free(LeafpressBlockCache* cache);
// What options strings name it by: `leafpress_block_cache://NUMBER`.
uint64_t leafpress_shim_block_cache_number(const LeafpressBlockCache* cache);
size_t leafpress_shim_block_cache_usage(const LeafpressBlockCache* cache);
size_t leafpress_shim_block_cache_capacity(const LeafpressBlockCache* cache);
void leafpress_shim_block_cache_set_capacity(const LeafpressBlockCache* cache, size_t bytes);
// False when there is no secondary cache, or it refuses.
bool leafpress_shim_block_cache_set_secondary_capacity(const LeafpressBlockCache* cache, size_t bytes);
}
