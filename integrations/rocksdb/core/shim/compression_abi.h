// What the Rust library offers the compression shim (core/src/compression/abi/). None of it throws.
#pragma once

#include "abi.h"

extern "C" {

struct LeafpressOptions;
struct LeafpressCompressor;
struct LeafpressDecompressor;
struct LeafpressDictionary;

int32_t leafpress_option_check(LeafpressView name, LeafpressView value, LeafpressText* spelling,
                               LeafpressText* error);
int32_t leafpress_options_new(const LeafpressView* pairs, size_t count, LeafpressOptions** out,
                              LeafpressText* error);
LeafpressText leafpress_options_text(const LeafpressOptions* options, LeafpressView name);
uint32_t leafpress_options_parallel_threads(const LeafpressOptions* options);
bool leafpress_options_honor_no_compression(const LeafpressOptions* options);
void leafpress_options_free(LeafpressOptions* options);

// `verified` says that RocksDB decodes every block after it was written (`verify_compression`): it can do so only with
// a dictionary that it received in exchange for samples.
int32_t leafpress_compressor_new(const LeafpressOptions* options, LeafpressView family, int32_t level, uint32_t max_dict_bytes,
                                 uint32_t zstd_max_train_bytes, bool verified, LeafpressCompressor** out,
                                 LeafpressText* error);
LeafpressCompressor* leafpress_compressor_copy(const LeafpressCompressor* compressor);
LeafpressCompressor* leafpress_compressor_train(const LeafpressCompressor* compressor, LeafpressView samples,
                                                const size_t* lengths, size_t count);
LeafpressCompressor* leafpress_compressor_with_dictionary(const LeafpressCompressor* compressor,
                                                          LeafpressView bytes);
void leafpress_compressor_free(LeafpressCompressor* compressor);
LeafpressView leafpress_compressor_dictionary(const LeafpressCompressor* compressor);
LeafpressText leafpress_compressor_ready_dictionary(const LeafpressCompressor* compressor);
size_t leafpress_compressor_sample_bytes(const LeafpressCompressor* compressor);
LeafpressText leafpress_compressor_id(const LeafpressCompressor* compressor);
uint8_t leafpress_compressor_block_type(const LeafpressCompressor* compressor);
// The block's length; 0: not tried; -1: does not fit; -2: did not decode to itself.
int64_t leafpress_compress(const LeafpressCompressor* compressor, LeafpressView raw, char* out, size_t out_len);

int32_t leafpress_decompressor_new(const LeafpressOptions* options, LeafpressDecompressor** out,
                                   LeafpressText* error);
void leafpress_decompressor_free(LeafpressDecompressor* decompressor);
int32_t leafpress_raw_bytes(uint8_t block_type, LeafpressView stored, uint64_t* raw_bytes, size_t* prefix_bytes,
                            LeafpressText* error);
int32_t leafpress_decompress(const LeafpressDecompressor* decompressor, uint8_t block_type,
                             const LeafpressDictionary* dictionary, LeafpressView block, char* raw, size_t raw_len,
                             LeafpressText* error);
int32_t leafpress_dictionary_new(LeafpressView bytes, LeafpressDictionary** out, LeafpressText* error);
size_t leafpress_dictionary_held_bytes(const LeafpressDictionary* dictionary);
void leafpress_dictionary_free(LeafpressDictionary* dictionary);
LeafpressView leafpress_block_type_name(uint8_t block_type);
}
