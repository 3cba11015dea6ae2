// What the Rust library offers the secondary cache's shim (core/src/secondary_cache/abi.rs). None of it throws.
#pragma once

#include "abi.h"

extern "C" {

struct LeafpressSecondaryCache;

// Receives text that is borrowed for the call.
using LeafpressSink = void (*)(void* context, const char* data, size_t len);
// Writes a block's `len` bytes; returns whether it could.
using LeafpressFill = bool (*)(void* context, char* out, size_t len);
// Receives a block that was found; returns whether it could be used. `tag` is the one of the block's insertion.
using LeafpressFound = bool (*)(void* context, const char* data, size_t len, uint16_t tag);

// Reads a size in the one syntax that all options have; false for what is none.
bool leafpress_size_parse(LeafpressView text, size_t* bytes);

// `pairs` alternates names and values. Returns null if an option is invalid: `sink` receives the error.
LeafpressSecondaryCache* leafpress_secondary_cache_new(const LeafpressView* pairs, size_t count, LeafpressSink sink,
                                                       void* context);
void leafpress_secondary_cache_free(LeafpressSecondaryCache* cache);

// Inserts a block. Returns 0, or 1 if the block's bytes were not available.
int32_t leafpress_secondary_cache_insert(const LeafpressSecondaryCache* cache, LeafpressView key, size_t raw_bytes,
                                         uint8_t family, uint16_t tag, bool compress, bool force, LeafpressFill fill,
                                         void* context);
// 0: not found; 1: found, and it stays; 2: found, and to be put in again when it is evicted.
int32_t leafpress_secondary_cache_lookup(const LeafpressSecondaryCache* cache, LeafpressView key, bool advise_erase,
                                         LeafpressFound found, void* context);
void leafpress_secondary_cache_erase(const LeafpressSecondaryCache* cache, LeafpressView key);

size_t leafpress_secondary_cache_capacity(const LeafpressSecondaryCache* cache);
void leafpress_secondary_cache_set_capacity(const LeafpressSecondaryCache* cache, size_t bytes);
void leafpress_secondary_cache_deflate(const LeafpressSecondaryCache* cache, size_t bytes);
void leafpress_secondary_cache_inflate(const LeafpressSecondaryCache* cache, size_t bytes);
// Changes an option of a cache in use; what is wrong goes to `sink`.
bool leafpress_secondary_cache_set(const LeafpressSecondaryCache* cache, LeafpressView name, LeafpressView value,
                                   LeafpressSink sink, void* context);

// An option's value, or with the name `statistics` the tickers. False for a name that is none.
bool leafpress_secondary_cache_get(const LeafpressSecondaryCache* cache, LeafpressView name, LeafpressSink sink,
                                   void* context);
// All options, as an options string.
void leafpress_secondary_cache_options(const LeafpressSecondaryCache* cache, LeafpressSink sink, void* context);
}
