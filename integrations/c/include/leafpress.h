/*
 * leafpress.h - Leafpress for C: maps and caches that keep their records
 * compressed.
 *
 * Apache-2.0 or MIT, at your option.
 *
 * This file is made from the sources of the library: do not edit it.
 */
#ifndef LEAFPRESS_H
#define LEAFPRESS_H

#include <stddef.h>
#include <stdint.h>

#define LP_VERSION "0.1.0"
#define LP_VERSION_MAJOR 0
#define LP_VERSION_MINOR 1
#define LP_VERSION_PATCH 0

#if defined(__GNUC__)
#define LP_API __attribute__((visibility("default")))
#else
#define LP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Conventions, which hold for all functions unless they say otherwise:
 *
 * Statuses. A function that can fail returns an lp_status, LP_OK if it
 * succeeded. lp_last_error() describes the thread's last call that failed. No
 * argument makes a function crash that is a valid pointer of its type, or NULL.
 *
 * Pointers. A handle is NULL or was handed out by the library and not freed
 * since. A pointer and a length are bytes that the function reads during the
 * call and keeps no pointer to; a pointer may be NULL where the length is 0.
 * Bytes that callbacks and lp_bytes show are not ended by a zero byte. Where a
 * result is written, the pointer may be NULL only where that is said. A result
 * of a function that fails is undefined, but handles are NULL then, and lengths
 * are as said.
 *
 * Memory. What a function named _open, _new, _train or _dictionary hands out is
 * freed by the function named _free of its type, and by nothing else. Nothing
 * else has to be freed.
 *
 * Callbacks are called by the thread that called the function, before it
 * returns, and are given the context unchanged. They may call the library, but
 * not free what the function works with. They must not leave by longjmp() or a
 * C++ exception.
 *
 * Threads. Any number of threads may call functions on the same tree, cache,
 * codec or dictionary at the same time, but for those that free it, which come
 * last. Options and cursors are for one thread at a time.
 *
 * Fork. In the child of a fork(), objects made before it must not be used:
 * functions return LP_FORKED, and functions that free have no effect. The child
 * may make its own.
 */

/* ==========================================================================
 * Handles
 * ========================================================================== */

/**
 * The options of a tree or a cache, by name. Opening copies them; one object
 * may open many. Only one thread at a time may use it.
 */
typedef struct lp_options lp_options;

/**
 * An ordered map from byte strings to byte strings whose records are kept
 * compressed. It keeps every record that is inserted: it has no memory bound.
 *
 * Any number of threads may use a tree at the same time, with all functions
 * except lp_tree_free(). Reads do not wait for locks. Operations on one record
 * are atomic.
 */
typedef struct lp_tree lp_tree;

/**
 * A position in a tree, which moves from record to record in the order of the
 * keys, in both directions.
 *
 * Other threads may write meanwhile: see lp_tree_scan(). A cursor has a copy of
 * its current record, and reads some records ahead, as they were at that
 * moment. Each thread needs its own cursor.
 */
typedef struct lp_tree_cursor lp_tree_cursor;

/**
 * A map from byte strings to byte strings with a memory bound: the least used
 * records are evicted, and records may expire. It may evict any record at any
 * time; it never returns a value that was replaced, removed or has expired.
 *
 * Any number of threads may use a cache at the same time, with all functions
 * except lp_cache_close() and lp_cache_free(). A read that finds its key in
 * memory does not wait for a lock, unless records have a time to idle.
 */
typedef struct lp_cache lp_cache;

/** A load in progress, which receives the loader's value. */
typedef struct lp_load lp_load;

/**
 * What many records have in common, for lz4 and zstd: small records compress
 * much better with one. A dictionary never changes; any number of threads may
 * use it at the same time. Its users hold a reference: it may be freed at any
 * time.
 */
typedef struct lp_dictionary lp_dictionary;

/**
 * A codec at a level, by its name: none, lz4, lz4:fast=1..65537, lz4:hc=2..12,
 * zstd:-131072..22 (not 0), onpair, onpair:14|16|huffman, deflate:1..12,
 * zlib:1..9, qpl:software|hardware|auto:fixed|dynamic.
 *
 * Any number of threads may use a codec at the same time, with all functions
 * except lp_codec_free().
 */
typedef struct lp_codec lp_codec;

/* ==========================================================================
 * Statuses and messages
 *
 * Any thread may call these at any time.
 * ========================================================================== */

/**
 * The result of a call. Every function that can fail returns one. Later
 * versions may add some: treat an unknown status as a failure.
 */
typedef enum lp_status {
  /** The call succeeded. */
  LP_OK = 0,
  /** There is no such record, or no further one. Not a failure. */
  LP_NOT_FOUND = 1,
  /** The key exists, and was expected to be absent. Not a failure. */
  LP_EXISTS = 2,
  /** The record has another value than expected. Not a failure. */
  LP_MISMATCH = 3,
  /** A callback returned other than 0, which stopped the call. Not a failure. */
  LP_STOPPED = 4,
  /** The buffer is too small; the needed length was written. */
  LP_BUFFER_TOO_SMALL = 5,
  /**
   * An argument or option is not allowed: a NULL, an unknown name, a number out
   * of bounds.
   */
  LP_INVALID_ARGUMENT = 6,
  /** The key, the value or the raw bytes are too long. */
  LP_TOO_LONG = 7,
  /**
   * Compressed bytes are damaged or of another format; or a tree or cache is
   * inconsistent.
   */
  LP_CORRUPT = 8,
  /** A sealed block needs a dictionary that was not passed. */
  LP_UNKNOWN_DICTIONARY = 9,
  /** The codec cannot run here; the message says what is missing. */
  LP_UNAVAILABLE = 10,
  /** The system has no more memory. */
  LP_OUT_OF_MEMORY = 11,
  /** A file or device cannot be used. */
  LP_IO = 12,
  /** A background thread cannot be started, or has ended. Records are safe. */
  LP_BACKGROUND = 13,
  /** The loader failed: see lp_cache_get_or_load(). */
  LP_LOAD_FAILED = 14,
  /** The handle was made before this process was forked. */
  LP_FORKED = 15,
  /**
   * A codec failed: for example, it refuses a dictionary, or there are too few
   * samples to train one.
   */
  LP_FAILED = 16,
  /**
   * A bug in the library was detected and contained. Please report it with the
   * message.
   */
  LP_PANIC = 17,
} lp_status;

/**
 * Returns the status's name, for example "LP_OK"; "unknown status" for other
 * numbers. The string is valid for ever.
 *
 * Any thread may call it at any time.
 */
LP_API const char *lp_status_name(int status);

/**
 * Returns a one-line description of this thread's last call that returned other
 * than LP_OK: the cause, and usually the remedy; "" if there was none. The
 * string is valid until the thread calls the library again.
 */
LP_API const char *lp_last_error(void);

/**
 * Returns the version of the running library, "0.1.0". LP_VERSION is that of
 * this header; the two are compatible if major and minor are equal. The string
 * is valid for ever.
 *
 * Any thread may call it at any time.
 */
LP_API const char *lp_version(void);

/* ==========================================================================
 * Bytes and callbacks
 * ========================================================================== */

/** Bytes that somebody else owns. data may be NULL where len is 0. */
typedef struct lp_bytes {
  /** Where they are. */
  const void *data;
  /** How many. */
  size_t len;
} lp_bytes;

/**
 * Is shown a value. The bytes are there until it returns. 0 to go on, anything
 * else to stop.
 */
typedef int (*lp_value_fn)(void *context, const void *value, size_t value_len);

/**
 * Is shown a record. The bytes are there until it returns. 0 to go on, anything
 * else to stop.
 */
typedef int (*lp_record_fn)(void *context,
                            const void *key,
                            size_t key_len,
                            const void *value,
                            size_t value_len);

/**
 * Is shown the value of keys[index]; value is NULL if the key is not there. The
 * bytes are there until it returns. 0 to go on, anything else to stop.
 */
typedef int (*lp_found_fn)(void *context, size_t index, const void *value, size_t value_len);

/* ==========================================================================
 * Options
 *
 * One thread at a time may call these with the same options.
 * ========================================================================== */

/** The reason for which a record left a cache. */
typedef enum lp_removal {
  /** It was evicted. */
  LP_REMOVAL_EVICTED = 0,
  /** It expired. */
  LP_REMOVAL_EXPIRED = 1,
  /** It was removed by its key. */
  LP_REMOVAL_REMOVED = 2,
  /** It was replaced. */
  LP_REMOVAL_REPLACED = 3,
} lp_removal;

/**
 * Receives a record that left a cache. Any thread may call it, the cache's own
 * as well, and several at a time.
 */
typedef void (*lp_removal_fn)(void *context,
                              const void *key,
                              size_t key_len,
                              const void *value,
                              size_t value_len,
                              lp_removal cause);

/**
 * Makes an options object with all options at their defaults. Free it with
 * lp_options_free().
 */
LP_API lp_status lp_options_new(lp_options **options);

/**
 * Sets an option, for example "codec" to "zstd:3". A number of bytes may end in
 * KiB, MiB, GiB or TiB: "512MiB". The last value of an option counts.
 *
 * Returns LP_INVALID_ARGUMENT for an unknown name or an invalid value; values
 * out of bounds are reported by opening.
 *
 * Options of trees and caches:
 *
 *   codec                      a name as for lp_codec_open(), or auto: several, by how often
 *                              a leaf is read. Default trial for trees, trial:memory for
 *                              caches: the best of several by trials
 *
 * Options of trees:
 *
 *   dictionary                 auto (default: trained from the tree's own records), off
 *   dictionary_bytes           longest trained dictionary, 1 KiB to 1 MiB
 *   shards                     1 (default) to 1024: more for many concurrent writers
 *   background_threads         threads that compact leaves, 0 (default: writers do) to 64
 *   load_threads               threads of lp_tree_load(), 1 (default) to 64
 *   leaf_bytes                 size at which a leaf splits, 1 KiB to 32 KiB; chosen by default
 *   frame_bytes                bytes that are compressed together, 1 (a record each) to
 *                              leaf_bytes; chosen by default
 *   inline_value_bytes         longest value stored in a leaf, 64 to 2048
 *   landing_bytes              size of a leaf's log of new writes, 0 to 16 KiB; chosen by default
 *   temperature_rule           of codec auto: costs:PCT, deviation:FACTOR, deviation:auto:PCT
 *
 * Options of caches:
 *
 *   memory_bytes               memory bound, 4 MiB or more; default 64 MiB
 *   ttl_ms                     time to live of a record, 1 or more; default unlimited
 *   time_to_idle_ms            time to live of a record that is not read, 1000 or more; default
 *                              unlimited
 *   refresh_ahead_ms           how long before its expiry lp_cache_get_or_load() loads a record anew;
 *                              other callers get the present value meanwhile
 *   stale_while_revalidate_ms  how long after its expiry a record is still returned to callers
 *                              that would wait for a load; default not at all
 *   share                      memory for uncompressed copies of the most read records: adaptive
 *                              (default) or fixed:PERCENT, 0 to 75
 *   miss_cost_us               what a miss costs, for the adaptive share and the codec, default 100
 *   disk_path, disk_bytes      a file (or device) for records that leave memory, and its size
 *   disk_codec                 default zstd:3
 *   disk_write_bytes_per_s     most bytes written per second on average; default unlimited
 *   disk_recover_after_crash   true: records on disk are recovered also after the process was
 *                              killed, by two more files next to it; default false
 *   disk_overwrite             true: a file that is not empty and that no cache wrote is
 *                              overwritten; default false: it is refused
 *   name                       the name in messages
 */
LP_API lp_status lp_options_set(lp_options *options,
                                const char *name,
                                const char *value);

/** Sets an option to a number. */
LP_API lp_status lp_options_set_number(lp_options *options, const char *name, uint64_t value);

/**
 * Sets the dictionary that a tree compresses with, instead of one that it
 * trains. NULL removes it.
 */
LP_API lp_status lp_options_set_dictionary(lp_options *options, const lp_dictionary *dictionary);

/**
 * Sets a cache's function that receives the removed records and the cause. It
 * may use the cache, but not close or free it. It and its context have to be
 * valid until lp_cache_close() or lp_cache_free() has returned. NULL removes
 * it.
 *
 * Values are decoded for it, which takes time. With a disk tier it receives the
 * records that leave memory and are not on disk. lp_cache_clear() reports none.
 */
LP_API lp_status lp_options_set_listener(lp_options *options,
                                         lp_removal_fn listener,
                                         void *context);

/**
 * Frees options; NULL is allowed. Trees and caches that were opened with them
 * are unaffected.
 */
LP_API void lp_options_free(lp_options *options);

/* ==========================================================================
 * Trees: ordered maps that stay compressed
 *
 * Any number of threads may call these with the same tree, but lp_tree_free(),
 * which comes last.
 * ========================================================================== */

/** Longest key, in bytes. */
#define LP_MAX_KEY_BYTES 1024

/** Longest value of a tree, in bytes: 64 MiB. */
#define LP_MAX_VALUE_BYTES 67108864

/** Makes a tree. options may be NULL. Free it with lp_tree_free(). */
LP_API lp_status lp_tree_open(const lp_options *options, lp_tree **tree);

/**
 * Frees the tree with all its records; NULL is allowed. Its cursors may still
 * be used: the memory is freed with the last of them.
 */
LP_API void lp_tree_free(lp_tree *tree);

/** Inserts the record, or replaces its value. */
LP_API lp_status lp_tree_insert(lp_tree *tree,
                                const void *key,
                                size_t key_len,
                                const void *value,
                                size_t value_len);

/** Inserts the record unless the key exists: returns LP_EXISTS then. */
LP_API lp_status lp_tree_insert_if_absent(lp_tree *tree,
                                          const void *key,
                                          size_t key_len,
                                          const void *value,
                                          size_t value_len);

/** Replaces the value if the key exists; otherwise returns LP_NOT_FOUND. */
LP_API lp_status lp_tree_update_if_present(lp_tree *tree,
                                           const void *key,
                                           size_t key_len,
                                           const void *value,
                                           size_t value_len);

/**
 * Copies the key's value to buffer, which has room for capacity bytes, and
 * writes its length to value_len. With a NULL buffer (and a capacity of 0) it
 * only returns the length.
 *
 * Returns LP_NOT_FOUND, or LP_BUFFER_TOO_SMALL with the needed length in
 * value_len. Another thread may replace the value by a longer one between two
 * calls: lp_tree_read() needs one call.
 */
LP_API lp_status lp_tree_get(lp_tree *tree,
                             const void *key,
                             size_t key_len,
                             void *buffer,
                             size_t capacity,
                             size_t *value_len);

/**
 * Calls read with the key's value, which is not copied. Returns LP_NOT_FOUND,
 * or LP_STOPPED if read returns other than 0. Memory that other threads free in
 * the tree is kept until read returns: return quickly.
 */
LP_API lp_status lp_tree_read(lp_tree *tree,
                              const void *key,
                              size_t key_len,
                              lp_value_fn read,
                              void *context);

/** Returns LP_OK if the key exists, else LP_NOT_FOUND. */
LP_API lp_status lp_tree_contains(lp_tree *tree, const void *key, size_t key_len);

/** Removes the record; returns LP_NOT_FOUND if it was not there. */
LP_API lp_status lp_tree_remove(lp_tree *tree, const void *key, size_t key_len);

/**
 * Calls read with the record of the least key; returns LP_NOT_FOUND if the tree
 * is empty.
 */
LP_API lp_status lp_tree_first(lp_tree *tree, lp_record_fn read, void *context);

/**
 * Calls read with the record of the greatest key; returns LP_NOT_FOUND if the
 * tree is empty.
 */
LP_API lp_status lp_tree_last(lp_tree *tree, lp_record_fn read, void *context);

/**
 * Removes the record of the least key and then calls read with it; returns
 * LP_NOT_FOUND if the tree is empty. Each of several threads gets another
 * record.
 */
LP_API lp_status lp_tree_pop_first(lp_tree *tree,
                                   lp_record_fn read,
                                   void *context);

/** Like lp_tree_pop_first(), for the greatest key. */
LP_API lp_status lp_tree_pop_last(lp_tree *tree, lp_record_fn read, void *context);

/**
 * Returns the number of records; while others write, the number of a moment
 * ago.
 */
LP_API lp_status lp_tree_len(lp_tree *tree, uint64_t *records);

/** Removes every record. */
LP_API lp_status lp_tree_clear(lp_tree *tree);

/**
 * Removes the record and then calls read with the value that it had;
 * LP_NOT_FOUND if it was not there. Of several threads that take a record one
 * gets it.
 */
LP_API lp_status lp_tree_take(lp_tree *tree,
                              const void *key,
                              size_t key_len,
                              lp_value_fn read,
                              void *context);

/**
 * Inserts the record, or replaces its value, and then calls read with the value
 * that it had; where it had none, read is not called.
 */
LP_API lp_status lp_tree_swap(lp_tree *tree,
                              const void *key,
                              size_t key_len,
                              const void *value,
                              size_t value_len,
                              lp_value_fn read,
                              void *context);

/**
 * Gives the key a new value if it has the expected one, in one step, and else
 * returns LP_MISMATCH: expected NULL means that the key is not there, value
 * NULL that it is to be removed. To change a value atomically, read it, make
 * another of it, call this, and begin again at LP_MISMATCH.
 */
LP_API lp_status lp_tree_compare_and_swap(lp_tree *tree,
                                          const void *key,
                                          size_t key_len,
                                          const lp_bytes *expected,
                                          const lp_bytes *value);

/**
 * Provides the next record to load: writes its key and value to the arguments
 * and returns 1; 0 when there are no more; a negative number to give up. The
 * bytes have to be valid until it is called again or the load ends.
 */
typedef int (*lp_next_fn)(void *context, lp_bytes *key, lp_bytes *value);

/**
 * Calls read with the value of each of count keys, in their order. It is faster
 * than as many calls of lp_tree_get(): the reads wait for memory together. The
 * values need not be of one moment.
 */
LP_API lp_status lp_tree_get_many(lp_tree *tree,
                                  const lp_bytes *keys,
                                  size_t count,
                                  lp_found_fn read,
                                  void *context);

/**
 * Inserts or replaces the records that next provides, and writes how many keys
 * were new to inserted (which may be NULL). Records in ascending order of keys
 * are packed into full leaves at once, which takes little more time than
 * compressing them; others are inserted one by one.
 *
 * Returns LP_STOPPED if next gives up; inserted is written in that case too.
 * After that, or a failure, the earlier records are stored.
 */
LP_API lp_status lp_tree_load(lp_tree *tree,
                              lp_next_fn next,
                              void *context,
                              uint64_t *inserted);

/* ==========================================================================
 * Trees: ranges
 *
 * Any number of threads may call these with the same tree.
 * ========================================================================== */

/**
 * Calls read with the records from the key from (included) to the key to
 * (excluded), in the order of their keys: that of memcmp(), where a key that is
 * a prefix of another one is first. If from or to is NULL, the range is open at
 * that end. Returns LP_STOPPED if read returns other than 0.
 *
 * Other threads, and read itself, may write meanwhile: a record that exists
 * from the start to the end of the scan is shown once; one that is inserted or
 * removed meanwhile may be shown or not. lp_tree_cursor moves in both
 * directions.
 */
LP_API lp_status lp_tree_scan(lp_tree *tree,
                              const void *from,
                              size_t from_len,
                              const void *to,
                              size_t to_len,
                              lp_record_fn read,
                              void *context);

/** Like lp_tree_scan(), for the records whose keys begin with prefix. */
LP_API lp_status lp_tree_scan_prefix(lp_tree *tree,
                                     const void *prefix,
                                     size_t prefix_len,
                                     lp_record_fn read,
                                     void *context);

/**
 * Counts the records from the key from (included) to the key to (excluded),
 * either NULL for an open end, by the leaves' counts: no record is decoded.
 */
LP_API lp_status lp_tree_count(lp_tree *tree,
                               const void *from,
                               size_t from_len,
                               const void *to,
                               size_t to_len,
                               uint64_t *records);

/**
 * Removes the records from the key from (included) to the key to (excluded),
 * either NULL for an open end, and writes how many there were to removed (which
 * may be NULL). It takes a small part of the time of as many calls of
 * lp_tree_remove(). It is atomic for each record, not for the range.
 */
LP_API lp_status lp_tree_remove_range(lp_tree *tree,
                                      const void *from,
                                      size_t from_len,
                                      const void *to,
                                      size_t to_len,
                                      uint64_t *removed);

/* ==========================================================================
 * Trees: cursors
 *
 * One thread at a time may call these with the same cursor; others may use its
 * tree, and other cursors.
 * ========================================================================== */

/**
 * Makes a cursor over the keys from the key from (included) to the key to
 * (excluded), either NULL for an open end. It is not at a record yet. Free it
 * with lp_tree_cursor_free().
 */
LP_API lp_status lp_tree_cursor_open(lp_tree *tree,
                                     const void *from,
                                     size_t from_len,
                                     const void *to,
                                     size_t to_len,
                                     lp_tree_cursor **cursor);

/** Frees a cursor; NULL is allowed. */
LP_API void lp_tree_cursor_free(lp_tree_cursor *cursor);

/**
 * Moves to the first record of the range. Returns LP_NOT_FOUND if there is
 * none.
 */
LP_API lp_status lp_tree_cursor_first(lp_tree_cursor *cursor);

/** Moves to the last record of the range. Returns LP_NOT_FOUND if there is none. */
LP_API lp_status lp_tree_cursor_last(lp_tree_cursor *cursor);

/**
 * Moves to the first record of the range whose key is key or greater. Returns
 * LP_NOT_FOUND if there is none: the cursor is then behind the last record.
 */
LP_API lp_status lp_tree_cursor_seek(lp_tree_cursor *cursor,
                                     const void *key,
                                     size_t key_len);

/**
 * Moves to the last record of the range whose key is key or less. Returns
 * LP_NOT_FOUND if there is none: the cursor is then before the first record.
 */
LP_API lp_status lp_tree_cursor_seek_back(lp_tree_cursor *cursor,
                                          const void *key,
                                          size_t key_len);

/**
 * Moves to the next record. Returns LP_NOT_FOUND behind the last, from where
 * lp_tree_cursor_prev() moves back to it. A cursor that is not at a record yet
 * moves to the first.
 */
LP_API lp_status lp_tree_cursor_next(lp_tree_cursor *cursor);

/**
 * Moves to the previous record. Returns LP_NOT_FOUND before the first, from
 * where lp_tree_cursor_next() moves back to it. A cursor that is not at a
 * record yet moves to the last.
 */
LP_API lp_status lp_tree_cursor_prev(lp_tree_cursor *cursor);

/**
 * Returns the key and the value at the cursor; key and value may each be NULL.
 * The bytes are valid until the cursor moves or is freed. Returns LP_NOT_FOUND
 * if the cursor is not at a record.
 */
LP_API lp_status lp_tree_cursor_record(const lp_tree_cursor *cursor,
                                       lp_bytes *key,
                                       lp_bytes *value);

/* ==========================================================================
 * Trees: upkeep and figures
 *
 * Any number of threads may call these with the same tree, and go on using it,
 * but for lp_tree_validate().
 * ========================================================================== */

/**
 * Does now what the tree would do some time after the last write, and waits for
 * it: training of a dictionary that is due, compressing with it, compacting
 * what is worth it. LP_BACKGROUND if a background thread has ended; what can be
 * done without it is done.
 */
LP_API lp_status lp_tree_settle(lp_tree *tree);

/**
 * Trains a dictionary again and compresses everything with it: the most that
 * can be done for memory. It takes as long as a load.
 */
LP_API lp_status lp_tree_compact(lp_tree *tree);

/**
 * Trains a dictionary from the tree's records now, and compresses all with it
 * if that saves more than it costs: LP_NOT_FOUND if it does not, or if there is
 * nothing to train. The tree does that by itself as it grows; this is for
 * records that have become others since.
 */
LP_API lp_status lp_tree_train(lp_tree *tree);

/**
 * Hands out the dictionary that the tree compresses with now, to be stored or
 * given to other trees. LP_NOT_FOUND if there is none. Free it with
 * lp_dictionary_free().
 */
LP_API lp_status lp_tree_dictionary(lp_tree *tree,
                                    lp_dictionary **dictionary);

/**
 * Checks every structural invariant, for tests. No other thread may write
 * meanwhile. LP_CORRUPT names the first that is broken: a bug in the library,
 * or memory that somebody overwrote.
 */
LP_API lp_status lp_tree_validate(lp_tree *tree);

/**
 * What a tree holds and what it did. Set struct_size to sizeof(lp_tree_stats)
 * before the call; later versions add fields at the end.
 *
 * bytes_held is the sum of the ten fields below it and of the tree's fixed
 * parts.
 */
typedef struct lp_tree_stats {
  /** In: the bytes of this struct that there are. Out: those that were written. */
  size_t struct_size;
  /** Records. */
  uint64_t records;
  /** Bytes of their keys and values. */
  uint64_t user_bytes;
  /** All memory that the tree holds, in bytes. */
  uint64_t bytes_held;
  /** Leaves: headers, keys and compressed frames. */
  uint64_t leaf_bytes;
  /** Inner nodes. */
  uint64_t inner_bytes;
  /** Indexes that lead past the inner nodes. */
  uint64_t interpolation_bytes;
  /** Landing buffers. */
  uint64_t landing_bytes;
  /** Values past 2 KiB. */
  uint64_t large_value_bytes;
  /** Copies of hot records (codec "auto"). */
  uint64_t hot_bytes;
  /** Dictionaries and their tables. */
  uint64_t dictionary_bytes;
  /** What was replaced, and is yet to be freed. */
  uint64_t retired_bytes;
  /** Holes, and what the heap holds in reserve. */
  uint64_t free_bytes;
  /** What is kept for each thread. */
  uint64_t thread_bytes;
  /** Leaves. */
  uint64_t leaves;
  /** Levels from the root to a leaf. */
  uint64_t depth;
  /** Leaves that are cold: compressed more strongly (codec "auto"). */
  uint64_t cold_leaves;
  /** Point reads. */
  uint64_t gets;
  /** Writes. */
  uint64_t puts;
  /** Removals. */
  uint64_t removes;
  /** Bytes of the keys and values that were written. */
  uint64_t put_bytes;
  /** Raw bytes that were compressed for that. */
  uint64_t compressed_bytes;
  /** The id of the dictionary in use, 0 for none. */
  uint64_t dictionary_id;
  /** Pieces of background work that failed, and were given up. */
  uint64_t background_failures;
} lp_tree_stats;

/** Fills in stats. It visits every leaf: not for every request. */
LP_API lp_status lp_tree_get_stats(lp_tree *tree, lp_tree_stats *stats);

/* ==========================================================================
 * Caches: maps that forget, within a bound of memory
 *
 * Any number of threads may call these with the same cache, but
 * lp_cache_close() and lp_cache_free(), of which one comes last; and
 * lp_cache_validate() while no other writes.
 * ========================================================================== */

/**
 * Longest value of a cache, in bytes. A value of more than an eighth of the
 * cache's memory is not kept.
 */
#define LP_MAX_CACHE_VALUE_BYTES 67108790

/** The time of a record that does not expire, in lp_insert_options. */
#define LP_NEVER UINT64_MAX

/**
 * How lp_cache_insert_entry() inserts a record. Fill it with zeros, and set
 * what differs.
 */
typedef struct lp_insert_options {
  /**
   * Time to live in milliseconds, up to 10 years; 0 for the option ttl_ms of
   * the cache, LP_NEVER for none.
   */
  uint64_t ttl_ms;
  /**
   * Time that the record stays without being read, in milliseconds, from 1,000
   * to 10 years; 0 for the option time_to_idle_ms of the cache, LP_NEVER for
   * none.
   */
  uint64_t time_to_idle_ms;
  /** Tags for lp_cache_invalidate_tag(): any bytes. */
  const lp_bytes *tags;
  /** Number of tags, at most 8. */
  size_t tag_count;
} lp_insert_options;

/**
 * Makes a cache and starts its background work. options may be NULL: 64 MiB,
 * and no disk. Close it with lp_cache_close() or lp_cache_free().
 *
 * With a disk tier the cache has the records that lp_cache_close() left in the
 * file; those in use return to memory in the background. Returns LP_IO if the
 * file cannot be used, or another cache uses it.
 */
LP_API lp_status lp_cache_open(const lp_options *options,
                               lp_cache **cache);

/**
 * Moves the records in memory to the disk tier, leaves them there for the next
 * cache that is opened with the same file, and frees the cache, whatever it
 * returns. Without a disk tier it does what lp_cache_free() does. Returns
 * LP_INVALID_ARGUMENT for NULL, and LP_IO if the file cannot be written: the
 * next cache is empty then.
 *
 * The next cache does not know of changes that the database behind it has until
 * then: remove those records there, or let records expire.
 */
LP_API lp_status lp_cache_close(lp_cache *cache);

/**
 * Frees the cache with all its records; NULL is allowed. The records in the
 * file of its disk tier are lost: see lp_cache_close().
 */
LP_API void lp_cache_free(lp_cache *cache);

/**
 * Inserts the record, or replaces its value. It expires after the option
 * ttl_ms, by default never. Other records may be evicted for it, or it for
 * others; a value of more than an eighth of the memory is not kept.
 */
LP_API lp_status lp_cache_insert(lp_cache *cache,
                                 const void *key,
                                 size_t key_len,
                                 const void *value,
                                 size_t value_len);

/**
 * Like lp_cache_insert(), for a record that expires after ttl_ms milliseconds,
 * 1 to 10 years. It may leave up to 1 ms earlier, and is never returned after
 * that time.
 */
LP_API lp_status lp_cache_insert_ttl(lp_cache *cache,
                                     const void *key,
                                     size_t key_len,
                                     const void *value,
                                     size_t value_len,
                                     uint64_t ttl_ms);

/**
 * Like lp_cache_insert(), with times and tags of the record's own. options may
 * be NULL.
 */
LP_API lp_status lp_cache_insert_entry(lp_cache *cache,
                                       const void *key,
                                       size_t key_len,
                                       const void *value,
                                       size_t value_len,
                                       const lp_insert_options *options);

/**
 * Removes every record that was inserted with the tag, in memory and on disk,
 * in constant time: the records take memory until they are found or evicted.
 * Records that are inserted from now on stay.
 */
LP_API lp_status lp_cache_invalidate_tag(lp_cache *cache,
                                         const void *tag,
                                         size_t tag_len);

/**
 * Copies the key's value to buffer, as lp_tree_get() does. Returns LP_NOT_FOUND
 * if the cache does not have the key.
 */
LP_API lp_status lp_cache_get(lp_cache *cache,
                              const void *key,
                              size_t key_len,
                              void *buffer,
                              size_t capacity,
                              size_t *value_len);

/** Calls read with the key's value, which is not copied, as lp_tree_read() does. */
LP_API lp_status lp_cache_read(lp_cache *cache,
                               const void *key,
                               size_t key_len,
                               lp_value_fn read,
                               void *context);

/**
 * Calls read with the value of each of count keys, in their order, as
 * lp_tree_get_many() does.
 */
LP_API lp_status lp_cache_get_many(lp_cache *cache,
                                   const lp_bytes *keys,
                                   size_t count,
                                   lp_found_fn read,
                                   void *context);

/** Returns LP_OK if the key is there, else LP_NOT_FOUND. It counts as a read. */
LP_API lp_status lp_cache_contains(lp_cache *cache, const void *key, size_t key_len);

/** Removes the record; returns LP_NOT_FOUND if it was not there. */
LP_API lp_status lp_cache_remove(lp_cache *cache, const void *key, size_t key_len);

/**
 * Removes the record without reporting whether it was there: returns LP_OK
 * either way. lp_cache_remove() may have to read the disk tier for its result;
 * this function reads nothing. A listener receives a record that was in memory.
 */
LP_API lp_status lp_cache_invalidate(lp_cache *cache,
                                     const void *key,
                                     size_t key_len);

/** Removes every record, including those on disk. */
LP_API lp_status lp_cache_clear(lp_cache *cache);

/**
 * Returns the number of records in memory, including expired ones that have not
 * been removed yet.
 */
LP_API lp_status lp_cache_len(lp_cache *cache, uint64_t *records);

/**
 * Changes the memory bound, 4 MiB or more. When it returns, the cache holds no
 * more than that.
 */
LP_API lp_status lp_cache_set_memory(lp_cache *cache, uint64_t bytes);

/**
 * Does the background work that would be done some time after the last write,
 * and waits for it: removes expired records, compacts leaves, writes what waits
 * for the disk. Returns LP_BACKGROUND if a background thread has ended; it
 * still does the work that needs no such thread.
 */
LP_API lp_status lp_cache_settle(lp_cache *cache);

/**
 * Checks every structural invariant, for tests. No other thread may write
 * meanwhile. Returns LP_CORRUPT, with the first violation in the message.
 */
LP_API lp_status lp_cache_validate(lp_cache *cache);

/**
 * Writes a few lines for people about the cache's contents and activity to
 * buffer, as a string that ends with a zero byte; text_len is its length
 * without that. With a NULL buffer it only returns the length. Returns
 * LP_BUFFER_TOO_SMALL unless capacity is greater than text_len.
 */
LP_API lp_status lp_cache_describe(lp_cache *cache,
                                   char *buffer,
                                   size_t capacity,
                                   size_t *text_len);

/**
 * Gets the value of a key that is not in the cache from its source, and passes
 * it to lp_load_set(). Returns 0; LP_NOT_FOUND if the source does not have the
 * key; anything else if it failed.
 */
typedef int (*lp_load_fn)(void *context, const void *key, size_t key_len, lp_load *load);

/**
 * Passes the loaded value; the bytes are copied. The record expires after the
 * option ttl_ms. May be called only by a loader, with the load that it was
 * called with.
 */
LP_API lp_status lp_load_set(lp_load *load,
                             const void *value,
                             size_t value_len);

/**
 * Sets the lifetime of the loaded value to ttl_ms milliseconds, 1 to 10 years,
 * instead of the option's.
 */
LP_API lp_status lp_load_set_ttl(lp_load *load,
                                 uint64_t ttl_ms);

/**
 * Calls read with the key's value. If the key is absent, load gets the value
 * first, and it is inserted.
 *
 * One thread loads a key at a time; others that miss it meanwhile wait, and get
 * the same value or the same failure. Failures are not kept: the next miss
 * loads again. If the key is written or removed meanwhile, the loaded value is
 * shown, but not inserted. The same holds if it cannot be stored: a key that is
 * too long, a time to live out of bounds.
 *
 * load is called with no lock held, and may use the cache. It may not close or
 * free it, nor call this function with the key that it loads: that returns
 * LP_INVALID_ARGUMENT. Two loaders that wait for each other's keys wait for
 * ever.
 *
 * Returns LP_NOT_FOUND if the loader returned that; LP_LOAD_FAILED if it
 * returned anything else but 0, or passed no value; LP_STOPPED if read returns
 * other than 0. read may be NULL, to load only.
 */
LP_API lp_status lp_cache_get_or_load(lp_cache *cache,
                                      const void *key,
                                      size_t key_len,
                                      lp_load_fn load,
                                      void *load_context,
                                      lp_value_fn read,
                                      void *read_context);

/**
 * Removes the record and then calls read with its previous value; returns
 * LP_NOT_FOUND if it was not there. Of several threads that take a record, one
 * gets it.
 */
LP_API lp_status lp_cache_take(lp_cache *cache,
                               const void *key,
                               size_t key_len,
                               lp_value_fn read,
                               void *context);

/**
 * Inserts the record as lp_cache_insert() does, and then calls read with its
 * previous value; if there was none, read is not called.
 */
LP_API lp_status lp_cache_swap(lp_cache *cache,
                               const void *key,
                               size_t key_len,
                               const void *value,
                               size_t value_len,
                               lp_value_fn read,
                               void *context);

/**
 * Atomically replaces the value if it is the expected one, and otherwise
 * returns LP_MISMATCH. A NULL expected means that the key is absent; a NULL
 * value removes the record. A record keeps its expiry. A cache may evict a
 * record: then it is absent. To change a value atomically, read it, compute the
 * new one, call this function, and start again on LP_MISMATCH.
 */
LP_API lp_status lp_cache_compare_and_swap(lp_cache *cache,
                                           const void *key,
                                           size_t key_len,
                                           const lp_bytes *expected,
                                           const lp_bytes *value);

/* ==========================================================================
 * Caches: ranges and figures
 *
 * Any number of threads may call these with the same cache.
 * ========================================================================== */

/**
 * Calls read with the records in memory from the key from (included) to the key
 * to (excluded), in the order of their keys, as lp_tree_scan() does. Records
 * that are only on disk are not shown. It does not count as a read of the
 * records.
 */
LP_API lp_status lp_cache_scan(lp_cache *cache,
                               const void *from,
                               size_t from_len,
                               const void *to,
                               size_t to_len,
                               lp_record_fn read,
                               void *context);

/** Like lp_cache_scan(), for the records whose keys begin with prefix. */
LP_API lp_status lp_cache_scan_prefix(lp_cache *cache,
                                      const void *prefix,
                                      size_t prefix_len,
                                      lp_record_fn read,
                                      void *context);

/**
 * Statistics of a cache. Set struct_size to sizeof(lp_cache_stats) before the
 * call; later versions add fields at the end. Fields that begin with disk_ are
 * 0 if there is no disk tier; disk_hits is part of hits.
 */
typedef struct lp_cache_stats {
  /** In: the size of the caller's struct. Out: the bytes that were written. */
  size_t struct_size;
  /** The memory bound, in bytes. */
  uint64_t memory_bytes;
  /** All memory that the cache holds, in bytes. */
  uint64_t bytes_held;
  /** The highest value seen of bytes_held. */
  uint64_t peak_bytes;
  /** Records in memory, including expired ones that have not been removed yet. */
  uint64_t records;
  /** Bytes of their keys and values. */
  uint64_t user_bytes;
  /** Reads that found their key. */
  uint64_t hits;
  /** Of these, those that found it on disk. */
  uint64_t disk_hits;
  /** Reads that did not find their key. */
  uint64_t misses;
  /**
   * Of these, those that got an expired value, because another thread was
   * loading the key.
   */
  uint64_t stale;
  /** Insertions. */
  uint64_t inserts;
  /** Bytes of the keys and values that were inserted. */
  uint64_t inserted_bytes;
  /** Removals. */
  uint64_t removes;
  /** Records that were evicted. */
  uint64_t evicted;
  /** Records that expired. */
  uint64_t expired;
  /** Values that were too large to be kept. */
  uint64_t too_large;
  /** Reads of records that could not be decoded, which count as misses. */
  uint64_t damaged;
  /** Records that returned from the disk to memory. */
  uint64_t promoted;
  /** Failures of background work. */
  uint64_t background_failures;
  /** The disk tier's capacity, in bytes. */
  uint64_t disk_capacity_bytes;
  /** Bytes of it in use. */
  uint64_t disk_used_bytes;
  /** Records on disk, including those that were replaced by newer ones. */
  uint64_t disk_records;
  /** Memory of the disk tier's index, in bytes. */
  uint64_t disk_index_bytes;
  /** Lookups on disk. */
  uint64_t disk_lookups;
  /** Blocks of 4 KiB read by these lookups. */
  uint64_t disk_blocks_read;
  /** Bytes of the records that were moved to the disk. */
  uint64_t disk_admitted_bytes;
  /** Bytes written for them, including merges. */
  uint64_t disk_written_bytes;
  /** Records that left memory and that the disk tier did not accept. */
  uint64_t disk_dropped;
  /** Reads and writes of the device that failed. */
  uint64_t disk_errors;
  /** Pages whose content differs from what was written. */
  uint64_t disk_damaged;
  /**
   * 1 if the disk tier was disabled because writes failed repeatedly: the cache
   * continues in memory.
   */
  uint64_t disk_has_failed;
} lp_cache_stats;

/** Fills in stats. It visits every leaf: do not call it on every request. */
LP_API lp_status lp_cache_get_stats(lp_cache *cache, lp_cache_stats *stats);

/* ==========================================================================
 * Dictionaries
 *
 * Any number of threads may call these with the same dictionary, but
 * lp_dictionary_free(), which comes last.
 * ========================================================================== */

/**
 * Makes a dictionary of bytes that were trained or chosen, with an id of your
 * own, by which sealed blocks refer to it. Free it with lp_dictionary_free().
 */
LP_API lp_status lp_dictionary_new(uint32_t id,
                                   const void *bytes,
                                   size_t bytes_len,
                                   lp_dictionary **dictionary);

/**
 * Trains a dictionary of at most max_bytes (256 or more; 16 to 64 KiB are
 * usual) for a codec from samples of the data to be compressed: at least eight
 * records and 2 KiB, ideally about fifty times max_bytes. Its id is computed
 * from its bytes. Training takes about 100 ms per megabyte. Returns LP_FAILED
 * if there are too few samples, or the codec uses no dictionaries. Free it with
 * lp_dictionary_free().
 */
LP_API lp_status lp_dictionary_train(const char *codec_name,
                                     const lp_bytes *samples,
                                     size_t count,
                                     size_t max_bytes,
                                     lp_dictionary **dictionary);

/**
 * Returns the dictionary's id and its bytes, to be stored; id and bytes may
 * each be NULL. The bytes are valid until it is freed.
 */
LP_API lp_status lp_dictionary_content(const lp_dictionary *dictionary,
                                       uint32_t *id,
                                       lp_bytes *bytes);

/** Frees a dictionary; NULL is allowed. */
LP_API void lp_dictionary_free(lp_dictionary *dictionary);

/* ==========================================================================
 * Codecs: compressing bytes of your own
 *
 * Any number of threads may call these with the same codec, but
 * lp_codec_free(), which comes last.
 * ========================================================================== */

/**
 * Receives a codec: its name at a usual level, and why it cannot run here, NULL
 * if it can. The strings are valid until the callback returns. Returns 0 to
 * continue, anything else to stop.
 */
typedef int (*lp_codec_fn)(void *context, const char *name, const char *unavailable_because);

/**
 * Opens the codec of that name. Returns LP_INVALID_ARGUMENT for an unknown
 * name, and LP_UNAVAILABLE if a library or device is missing. Free it with
 * lp_codec_free().
 */
LP_API lp_status lp_codec_open(const char *name,
                               lp_codec **codec);

/** Frees a codec; NULL is allowed. */
LP_API void lp_codec_free(lp_codec *codec);

/** Calls report with each codec. */
LP_API lp_status lp_codec_list(lp_codec_fn report, void *context);

/**
 * Returns the most bytes that raw_len bytes can become with any codec:
 * lp_compress() never needs more room.
 */
LP_API size_t lp_compress_bound(size_t raw_len);

/**
 * Compresses raw into block, which has room for capacity bytes, and writes the
 * block's length to block_len. With a NULL block (and a capacity of 0) it only
 * returns the length, which takes as long.
 *
 * The block contains neither the length of raw nor the codec and dictionary
 * that made it: store those, or use lp_seal(), which does. A block of lz4 is a
 * plain LZ4 block; of deflate, zlib and qpl a raw deflate stream (RFC 1951); of
 * zstd a frame without magic number and header. A dictionary (NULL for none) is
 * used by lz4 and zstd, and ignored by others. Data that does not shrink
 * becomes up to lp_compress_bound() bytes.
 */
LP_API lp_status lp_compress(const lp_codec *codec,
                             const lp_dictionary *dictionary,
                             const void *raw,
                             size_t raw_len,
                             void *block,
                             size_t capacity,
                             size_t *block_len);

/**
 * Decompresses block into raw, whose length has to be that of the original
 * data. Returns LP_CORRUPT for a block that lp_compress() did not make of that
 * many bytes with this dictionary, as far as that can be detected: only a
 * sealed block has a checksum. No block makes it read or write outside of the
 * buffers.
 */
LP_API lp_status lp_decompress(const lp_codec *codec,
                               const lp_dictionary *dictionary,
                               const void *block,
                               size_t block_len,
                               void *raw,
                               size_t raw_len);

/* ==========================================================================
 * Sealed blocks: they say themselves what they are
 *
 * Any number of threads may call these, with the same codec and dictionaries as
 * well.
 * ========================================================================== */

/**
 * The header of a sealed block. Set struct_size to sizeof(lp_sealed_label)
 * before the call.
 */
typedef struct lp_sealed_label {
  /** In: the size of the caller's struct. Out: the bytes that were written. */
  size_t struct_size;
  /** Raw bytes. */
  uint64_t raw_len;
  /** The id of the dictionary that the block needs, if has_dictionary is not 0. */
  uint32_t dictionary_id;
  /** Not 0 if the block needs a dictionary. */
  int has_dictionary;
  /**
   * The codec without its level: "none" (stored uncompressed), "lz4", "zstd" or
   * "deflate". It ends with a zero byte.
   */
  char codec[16];
} lp_sealed_label;

/**
 * Returns the most bytes that raw_len bytes become when they are sealed: 22
 * bytes more.
 */
LP_API size_t lp_seal_bound(size_t raw_len);

/**
 * Compresses raw into a sealed block, which begins with the codec, the
 * dictionary's id, the raw length and a checksum, 14 to 22 bytes. Data that
 * does not shrink is stored uncompressed. buffer, capacity and sealed_len are
 * as in lp_compress(). Returns LP_TOO_LONG past 1 GiB.
 */
LP_API lp_status lp_seal(const lp_codec *codec,
                         const lp_dictionary *dictionary,
                         const void *raw,
                         size_t raw_len,
                         void *buffer,
                         size_t capacity,
                         size_t *sealed_len);

/**
 * Decodes a sealed block of any codec into buffer and writes the raw length to
 * raw_len; with a NULL buffer (and a capacity of 0) it only returns the length,
 * and checks only that the length is possible. dictionaries are the count
 * dictionaries that the block may have been sealed with; there may be none.
 *
 * Returns LP_CORRUPT for any damage, LP_UNKNOWN_DICTIONARY or
 * LP_BUFFER_TOO_SMALL. The content of buffer after a failure is undefined.
 */
LP_API lp_status lp_unseal(const void *sealed,
                           size_t sealed_len,
                           const lp_dictionary *const *dictionaries,
                           size_t count,
                           void *buffer,
                           size_t capacity,
                           size_t *raw_len);

/**
 * Reads the header of a sealed block without decoding it. Returns LP_CORRUPT if
 * it is not a sealed block.
 */
LP_API lp_status lp_sealed_read_label(const void *sealed,
                                      size_t sealed_len,
                                      lp_sealed_label *label);

#ifdef __cplusplus
}
#endif

#endif /* LEAFPRESS_H */
