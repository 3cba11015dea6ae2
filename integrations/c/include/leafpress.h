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
 * Statuses. A function that can fail returns an lp_status, LP_OK if it did what
 * it was asked for. lp_last_error() says in words what went wrong in the
 * thread's last call that returned another. No argument makes a function crash
 * that is a valid pointer of its type, or NULL.
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
 * returns, and are given the context as it is. They may call the library, but
 * not free what the function works with. They must not leave by longjmp() or a
 * C++ exception.
 *
 * Threads. Any number of threads may call functions on the same tree, cache,
 * codec or dictionary at the same time, but for those that free it, which come
 * last. Options and cursors are for one thread at a time.
 *
 * Fork. In the child of a fork() what was made before it is not to be used:
 * functions return LP_FORKED, and those that free leave it as it is. The child
 * may make its own.
 */

/* ==========================================================================
 * Handles
 * ========================================================================== */

/**
 * How a tree or a cache is to be opened: options by name. Opening takes a copy;
 * one object may open many. No two threads may use one at the same time.
 */
typedef struct lp_options lp_options;

/**
 * An ordered map from byte strings to byte strings whose records are kept
 * compressed. It keeps what is inserted: it has no bound of memory.
 *
 * Any number of threads may use one at the same time, by all functions but
 * lp_tree_free(). Reads wait for no lock. What is done to one record is atomic.
 */
typedef struct lp_tree lp_tree;

/**
 * A place in a tree, which goes from record to record in the order of the keys,
 * either way.
 *
 * Other threads may write meanwhile: see lp_tree_scan(). A cursor has a copy of
 * the record that it is at, and reads some records ahead as they were then.
 * Each thread needs its own.
 */
typedef struct lp_tree_cursor lp_tree_cursor;

/**
 * A map from byte strings to byte strings that holds no more memory than it is
 * given: what is used least makes room, and records may expire. It may forget
 * any record at any time; it never returns a value that was replaced, removed
 * or has expired.
 *
 * Any number of threads may use one at the same time, by all functions but
 * lp_cache_close() and lp_cache_free(). A read that finds its key in memory
 * waits for no lock.
 */
typedef struct lp_cache lp_cache;

/** A load under way: what a loader puts its value into. */
typedef struct lp_load lp_load;

/**
 * What many records have in common, for lz4 and zstd: small records compress
 * much better with one. Never changed once it is made; any number of threads
 * may use one at the same time. What uses it keeps it: it may be freed at any
 * time.
 */
typedef struct lp_dictionary lp_dictionary;

/**
 * A codec at a level, by its name: none, lz4, lz4:fast=1..65537, lz4:hc=2..12,
 * zstd:-131072..22 (not 0), deflate:1..12, zlib:1..9,
 * qpl:software|hardware|auto:fixed|dynamic.
 *
 * Any number of threads may use one at the same time, by all functions but
 * lp_codec_free().
 */
typedef struct lp_codec lp_codec;

/* ==========================================================================
 * Statuses and messages
 *
 * Any thread may call these at any time.
 * ========================================================================== */

/**
 * What came of a call. Every function that can fail returns one. Later versions
 * may add some: take what you do not know as a failure.
 */
typedef enum lp_status {
  /** It was done. */
  LP_OK = 0,
  /** There is no such record, or none further on. No failure. */
  LP_NOT_FOUND = 1,
  /** The key is there already, and was to be absent. No failure. */
  LP_EXISTS = 2,
  /** The record has another value than was expected. No failure. */
  LP_MISMATCH = 3,
  /** A callback returned other than 0, so that the rest was left. No failure. */
  LP_STOPPED = 4,
  /** The buffer is too small; the length that is needed was written. */
  LP_BUFFER_TOO_SMALL = 5,
  /**
   * An argument or option is not allowed: a NULL, a name that is unknown, a
   * number out of its bounds.
   */
  LP_INVALID_ARGUMENT = 6,
  /** The key, the value or the raw bytes are longer than they may be. */
  LP_TOO_LONG = 7,
  /**
   * Compressed bytes are damaged, or not what they are taken for; or a tree or
   * cache was found broken.
   */
  LP_CORRUPT = 8,
  /** A sealed block needs a dictionary that was not given. */
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
   * A codec failed by itself: a dictionary that it refuses, too few samples to
   * train one.
   */
  LP_FAILED = 16,
  /**
   * A bug in the library was met and contained. Please report it with the
   * message.
   */
  LP_PANIC = 17,
} lp_status;

/**
 * The status's name, "LP_OK" and so on; "unknown status" for a number that is
 * none. The string is there for ever.
 *
 * Any thread may call it at any time.
 */
LP_API const char *lp_status_name(int status);

/**
 * What went wrong in the last call of this thread that returned other than
 * LP_OK, in a line for people: what it was, and mostly what to do. "" where
 * there was none. The string is there until the thread calls the library again.
 */
LP_API const char *lp_last_error(void);

/**
 * The version of the library that runs, "0.1.0". LP_VERSION is that of this
 * header; the two fit where major and minor are equal. The string is there for
 * ever.
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
 * Is shown the value of keys[index]; value is NULL where the key is not there.
 * The bytes are there until it returns. 0 to go on, anything else to stop.
 */
typedef int (*lp_found_fn)(void *context, size_t index, const void *value, size_t value_len);

/* ==========================================================================
 * Options
 *
 * One thread at a time may call these with the same options.
 * ========================================================================== */

/** Why a record left a cache. */
typedef enum lp_removal {
  /** It made room for others. */
  LP_REMOVAL_EVICTED = 0,
  /** Its time was over. */
  LP_REMOVAL_EXPIRED = 1,
  /** It was removed by its key. */
  LP_REMOVAL_REMOVED = 2,
  /** Its key was inserted again. */
  LP_REMOVAL_REPLACED = 3,
} lp_removal;

/**
 * Is told of a record that left a cache. Any thread may call it, the cache's
 * own as well, and several at a time.
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
 * Sets an option, "codec" to "zstd:3" say. A number of bytes may end in KiB,
 * MiB, GiB or TiB: "512MiB". The last value counts.
 *
 * LP_INVALID_ARGUMENT for a name that no tree or cache has and for a value that
 * cannot be; what is out of bounds is said when it is opened.
 *
 * Of trees and caches:
 *
 *   codec                      as lp_codec_open() takes it, or auto: several, by how much a
 *                              leaf is read. Default lz4 for trees, zstd:1 for caches
 *
 * Of trees:
 *
 *   dictionary                 auto (default: trained from the tree's own records), off
 *   dictionary_bytes           longest one that is trained, 1 KiB to 1 MiB
 *   shards                     1 (default) to 1024: more for many writers at a time
 *   background_threads         that compact leaves, 0 (default: writers do) to 64
 *   load_threads               that lp_tree_load() uses, 1 (default) to 64
 *   leaf_bytes                 at which a leaf splits, 1 KiB to 32 KiB; chosen by default
 *   frame_bytes                that are compressed together, from 1 (a record each) to
 *                              leaf_bytes; chosen by default
 *   sub_pages                  1 to 64: records are put into frames by a hash of the key
 *   inline_value_bytes         longest value that stands in a leaf, 64 to 2048
 *   landing_bytes              of a leaf's log of new writes, 0 to 16 KiB; chosen by default
 *   temperature_rule           of codec auto: costs:PCT, deviation:FACTOR, deviation:auto:PCT
 *
 * Of caches:
 *
 *   memory_bytes               all that it may hold, from 4 MiB on; default 64 MiB
 *   policy                     s3-fifo (default), clock, lru, page
 *   ttl_ms                     how long a record lives, from 1000 on; default for ever
 *   time_to_idle_ms            how long a record lives that is not read; default for ever
 *   stale_while_revalidate_ms  after its time a record is given to those who would wait for a
 *                              load, for so long; default not at all
 *   disk_path, disk_bytes      a file (or device) for what leaves memory, and how much of it
 *   disk_codec                 default zstd:3
 *   disk_write_bytes_per_s     most that is written a second on average; default any number
 *   disk_recover_after_crash   true: what is on disk is found again after the process was killed
 *                              too, by two files beside it; default false
 *   disk_overwrite             true: a file that is not empty and that no cache wrote is written
 *                              over; default false: it is refused
 *   name                       for messages
 */
LP_API lp_status lp_options_set(lp_options *options,
                                const char *name,
                                const char *value);

/** The same with a number. */
LP_API lp_status lp_options_set_number(lp_options *options, const char *name, uint64_t value);

/**
 * Of a tree: the dictionary that it compresses with, in place of one that it
 * trains. NULL takes that back.
 */
LP_API lp_status lp_options_set_dictionary(lp_options *options,
                                           const lp_dictionary *dictionary);

/**
 * Of a cache: a function that is told which records leave and why. It may use
 * the cache, but not close or free it. It and its context have to be there
 * until lp_cache_close() or lp_cache_free() has returned. NULL takes that back.
 *
 * Values are decoded for it, which takes time. With a disk tier it is told of
 * what leaves memory and is not on disk. lp_cache_clear() tells of none.
 */
LP_API lp_status lp_options_set_listener(lp_options *options,
                                         lp_removal_fn listener,
                                         void *context);

/** Frees it; NULL is allowed. What was opened with it goes on. */
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
 * Frees the tree with all its records; NULL is allowed. Cursors of it may still
 * be used: with the last of them it is gone.
 */
LP_API void lp_tree_free(lp_tree *tree);

/** Inserts the record, or replaces its value. */
LP_API lp_status lp_tree_insert(lp_tree *tree,
                                const void *key,
                                size_t key_len,
                                const void *value,
                                size_t value_len);

/** Inserts the record unless the key is there: LP_EXISTS then. */
LP_API lp_status lp_tree_insert_if_absent(lp_tree *tree,
                                          const void *key,
                                          size_t key_len,
                                          const void *value,
                                          size_t value_len);

/** Replaces the value if the key is there; else LP_NOT_FOUND. */
LP_API lp_status lp_tree_update_if_present(lp_tree *tree,
                                           const void *key,
                                           size_t key_len,
                                           const void *value,
                                           size_t value_len);

/**
 * Copies the key's value to buffer, which has room for capacity bytes, and
 * writes its length to value_len. With a NULL buffer (and a capacity of 0) it
 * only tells the length.
 *
 * LP_NOT_FOUND; LP_BUFFER_TOO_SMALL, where value_len tells how much room is
 * needed. Another thread may replace the value by a longer one between two
 * calls: lp_tree_read() asks once.
 */
LP_API lp_status lp_tree_get(lp_tree *tree,
                             const void *key,
                             size_t key_len,
                             void *buffer,
                             size_t capacity,
                             size_t *value_len);

/**
 * Calls read with the key's value, which is not copied. LP_NOT_FOUND;
 * LP_STOPPED if read returns other than 0. Memory that others free in the tree
 * is kept until read returns: be quick.
 */
LP_API lp_status lp_tree_read(lp_tree *tree,
                              const void *key,
                              size_t key_len,
                              lp_value_fn read,
                              void *context);

/** LP_OK if the key is there, else LP_NOT_FOUND. */
LP_API lp_status lp_tree_contains(lp_tree *tree, const void *key, size_t key_len);

/** Removes the record; LP_NOT_FOUND if it was not there. */
LP_API lp_status lp_tree_remove(lp_tree *tree, const void *key, size_t key_len);

/**
 * Calls read with the record of the least key; LP_NOT_FOUND if the tree is
 * empty.
 */
LP_API lp_status lp_tree_first(lp_tree *tree, lp_record_fn read, void *context);

/**
 * Calls read with the record of the greatest key; LP_NOT_FOUND if the tree is
 * empty.
 */
LP_API lp_status lp_tree_last(lp_tree *tree, lp_record_fn read, void *context);

/**
 * Removes the record of the least key and then calls read with it; LP_NOT_FOUND
 * if the tree is empty. Of several threads each gets another record.
 */
LP_API lp_status lp_tree_pop_first(lp_tree *tree,
                                   lp_record_fn read,
                                   void *context);

/** The same from the other end. */
LP_API lp_status lp_tree_pop_last(lp_tree *tree, lp_record_fn read, void *context);

/**
 * How many records there are; while others write, how many there were a moment
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
 * Gives the next record to load: puts its key and value where they are asked
 * for, and returns 1; 0 when there are no more; a negative number to give up.
 * The bytes have to be there until it is called again, or the load is over.
 */
typedef int (*lp_next_fn)(void *context, lp_bytes *key, lp_bytes *value);

/**
 * Calls read with the value of each of count keys, in their order. That takes
 * less time than as many lp_tree_get()s: the reads wait for memory together.
 * They need not be of one moment.
 */
LP_API lp_status lp_tree_get_many(lp_tree *tree,
                                  const lp_bytes *keys,
                                  size_t count,
                                  lp_found_fn read,
                                  void *context);

/**
 * Inserts or replaces the records that next gives, and tells how many keys were
 * new (inserted may be NULL). Records whose keys ascend are made into full
 * leaves at once, which takes little more time than compressing them; others
 * are inserted one by one.
 *
 * LP_STOPPED if next gives up; inserted is told then, too. After that, or a
 * failure, the records before it are there.
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
 * (excluded), in the order of their keys: that of memcmp(), and of two keys of
 * which one begins with the other the shorter is first. Where from or to is
 * NULL, the range is open at that end. LP_STOPPED if read returns other than 0.
 *
 * Other threads may write meanwhile, and so may read: a record that is there
 * from the start to the end of the scan is shown once; one that comes or goes
 * meanwhile may be shown or not. lp_tree_cursor goes back and forth.
 */
LP_API lp_status lp_tree_scan(lp_tree *tree,
                              const void *from,
                              size_t from_len,
                              const void *to,
                              size_t to_len,
                              lp_record_fn read,
                              void *context);

/** The same with the records whose keys begin with prefix. */
LP_API lp_status lp_tree_scan_prefix(lp_tree *tree,
                                     const void *prefix,
                                     size_t prefix_len,
                                     lp_record_fn read,
                                     void *context);

/**
 * Tells how many records there are from the key from (included) to the key to
 * (excluded), either NULL for an open end. Leaves are asked, and no record is
 * decoded for it.
 */
LP_API lp_status lp_tree_count(lp_tree *tree,
                               const void *from,
                               size_t from_len,
                               const void *to,
                               size_t to_len,
                               uint64_t *records);

/**
 * Removes the records from the key from (included) to the key to (excluded),
 * either NULL for an open end, and tells how many there were (removed may be
 * NULL). It takes a small part of the time of as many lp_tree_remove()s. Atomic
 * for each record, not for the range.
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
 * (excluded), either NULL for an open end. It is at no record yet. Free it with
 * lp_tree_cursor_free().
 */
LP_API lp_status lp_tree_cursor_open(lp_tree *tree,
                                     const void *from,
                                     size_t from_len,
                                     const void *to,
                                     size_t to_len,
                                     lp_tree_cursor **cursor);

/** Frees it; NULL is allowed. */
LP_API void lp_tree_cursor_free(lp_tree_cursor *cursor);

/** Goes to the first record of the range. LP_NOT_FOUND if there is none. */
LP_API lp_status lp_tree_cursor_first(lp_tree_cursor *cursor);

/** Goes to the last record of the range. LP_NOT_FOUND if there is none. */
LP_API lp_status lp_tree_cursor_last(lp_tree_cursor *cursor);

/**
 * Goes to the first record of the range whose key is key or greater.
 * LP_NOT_FOUND if there is none: the cursor is behind the last then.
 */
LP_API lp_status lp_tree_cursor_seek(lp_tree_cursor *cursor,
                                     const void *key,
                                     size_t key_len);

/**
 * Goes to the last record of the range whose key is key or less. LP_NOT_FOUND
 * if there is none: the cursor is before the first then.
 */
LP_API lp_status lp_tree_cursor_seek_back(lp_tree_cursor *cursor,
                                          const void *key,
                                          size_t key_len);

/**
 * Goes to the next record. LP_NOT_FOUND behind the last, from where
 * lp_tree_cursor_prev() leads back to it. Where the cursor was at no record yet
 * it goes to the first.
 */
LP_API lp_status lp_tree_cursor_next(lp_tree_cursor *cursor);

/**
 * Goes to the record before. LP_NOT_FOUND before the first, from where
 * lp_tree_cursor_next() leads back to it. Where the cursor was at no record yet
 * it goes to the last.
 */
LP_API lp_status lp_tree_cursor_prev(lp_tree_cursor *cursor);

/**
 * Tells the key and the value that the cursor is at; key and value may each be
 * NULL. The bytes are there until the cursor moves or is freed. LP_NOT_FOUND
 * where it is at no record.
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
 * Trains a dictionary anew and compresses everything with it: the most that can
 * be done for memory. It takes as long as a load.
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
 * Longest value of a cache, in bytes. One of more than an eighth of the cache's
 * memory is not kept.
 */
#define LP_MAX_CACHE_VALUE_BYTES 67108853

/**
 * Makes a cache and starts its upkeep. options may be NULL: 64 MiB, and no
 * disk. End it with lp_cache_close() or lp_cache_free().
 *
 * With a disk tier it has what lp_cache_close() left in the file; what was in
 * use comes back to memory in the background. LP_IO if the file cannot be used,
 * or another cache has it.
 */
LP_API lp_status lp_cache_open(const lp_options *options,
                               lp_cache **cache);

/**
 * Moves what is in memory to the disk tier, leaves it there for the next cache
 * that is opened with the same file, and frees the cache, whatever is returned.
 * Without a disk tier it does what lp_cache_free() does. NULL is
 * LP_INVALID_ARGUMENT. LP_IO if the file cannot be written: the next cache
 * begins empty then.
 *
 * What changes in the database behind the cache until then, the next cache does
 * not know: remove it there, or let records expire.
 */
LP_API lp_status lp_cache_close(lp_cache *cache);

/**
 * Frees the cache with all its records; NULL is allowed. What is in the file of
 * its disk tier is lost: see lp_cache_close().
 */
LP_API void lp_cache_free(lp_cache *cache);

/**
 * Inserts the record, or replaces its value. It lives as long as the option
 * ttl_ms says, for ever by default. Other records may make room for it, or it
 * for others; a value of more than an eighth of the memory is not kept.
 */
LP_API lp_status lp_cache_insert(lp_cache *cache,
                                 const void *key,
                                 size_t key_len,
                                 const void *value,
                                 size_t value_len);

/**
 * The same of a record that lives for ttl_ms milliseconds, 1000 to 10 years. It
 * may go up to a quarter of a second before its time, and is never returned
 * after it.
 */
LP_API lp_status lp_cache_insert_ttl(lp_cache *cache,
                                     const void *key,
                                     size_t key_len,
                                     const void *value,
                                     size_t value_len,
                                     uint64_t ttl_ms);

/**
 * Copies the key's value to buffer, as lp_tree_get() does. LP_NOT_FOUND if the
 * cache does not have it, or not any more.
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

/** LP_OK if the key is there, else LP_NOT_FOUND. It counts as a read. */
LP_API lp_status lp_cache_contains(lp_cache *cache, const void *key, size_t key_len);

/** Removes the record; LP_NOT_FOUND if it was not there. */
LP_API lp_status lp_cache_remove(lp_cache *cache, const void *key, size_t key_len);

/**
 * Removes the record, and does not say whether it was there: LP_OK either way.
 * With a disk tier lp_cache_remove() may have to read the disk to answer that;
 * this reads nothing. A listener is notified of a record that was in memory.
 */
LP_API lp_status lp_cache_invalidate(lp_cache *cache,
                                     const void *key,
                                     size_t key_len);

/** Removes every record, those on disk as well. */
LP_API lp_status lp_cache_clear(lp_cache *cache);

/**
 * How many records there are in memory, those included whose time is over and
 * that have not left yet.
 */
LP_API lp_status lp_cache_len(lp_cache *cache,
                              uint64_t *records);

/**
 * Changes what the cache may hold, from 4 MiB on. When this returns it holds no
 * more than that.
 */
LP_API lp_status lp_cache_set_memory(lp_cache *cache, uint64_t bytes);

/**
 * Does now what the cache would do some time after the last write, and waits
 * for it: lets go of what is over, compacts what is worth it, writes what waits
 * for the disk. LP_BACKGROUND if a background thread has ended; what can be
 * done without it is done.
 */
LP_API lp_status lp_cache_settle(lp_cache *cache);

/**
 * Checks every structural invariant, for tests. No other thread may write
 * meanwhile. LP_CORRUPT names the first that is broken.
 */
LP_API lp_status lp_cache_validate(lp_cache *cache);

/**
 * Writes a few lines for people about what the cache holds and does to buffer,
 * as a string that ends with a zero byte; text_len is its length without that.
 * With a NULL buffer it only tells the length. LP_BUFFER_TOO_SMALL unless
 * capacity is greater than text_len.
 */
LP_API lp_status lp_cache_describe(lp_cache *cache,
                                   char *buffer,
                                   size_t capacity,
                                   size_t *text_len);

/**
 * Gets the value of a key that is not in the cache from wherever it is, and
 * hands it over by lp_load_set(). It returns 0; LP_NOT_FOUND if there is no
 * such thing; anything else if it failed.
 */
typedef int (*lp_load_fn)(void *context, const void *key, size_t key_len, lp_load *load);

/**
 * Hands over what was loaded; the bytes are copied. The record lives as long as
 * the option ttl_ms says. Only for a loader, and the load that it was called
 * with.
 */
LP_API lp_status lp_load_set(lp_load *load,
                             const void *value,
                             size_t value_len);

/**
 * Has what is loaded live for ttl_ms milliseconds, 1000 to 10 years, in place
 * of what the option says.
 */
LP_API lp_status lp_load_set_ttl(lp_load *load,
                                 uint64_t ttl_ms);

/**
 * Calls read with the key's value. If it is not there, load gets it first, and
 * it is inserted.
 *
 * One thread loads a key at a time; others that miss it meanwhile wait, and get
 * the same value or the same failure, which is not kept: the next to miss loads
 * again. If the key is written or removed meanwhile, what was loaded is shown,
 * but not inserted. The same holds where it cannot be stored: a key that is too
 * long, a time to live out of bounds.
 *
 * load is called with no lock held, and may use the cache. It may not close or
 * free it, nor call this function with the key that it loads:
 * LP_INVALID_ARGUMENT. Two loaders that wait for each other's keys wait for
 * ever.
 *
 * LP_NOT_FOUND if the loader returned that; LP_LOAD_FAILED if it returned
 * anything else but 0, or handed over no value; LP_STOPPED if read returns
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
 * Removes the record and then calls read with the value that it had;
 * LP_NOT_FOUND if it was not there. Of several threads that take a record one
 * gets it.
 */
LP_API lp_status lp_cache_take(lp_cache *cache,
                               const void *key,
                               size_t key_len,
                               lp_value_fn read,
                               void *context);

/**
 * Inserts the record as lp_cache_insert() does, and then calls read with the
 * value that it had; where it had none, read is not called.
 */
LP_API lp_status lp_cache_swap(lp_cache *cache,
                               const void *key,
                               size_t key_len,
                               const void *value,
                               size_t value_len,
                               lp_value_fn read,
                               void *context);

/**
 * Gives the key a new value if it has the expected one, in one step, and else
 * returns LP_MISMATCH: expected NULL means that the key is not there, value
 * NULL that it is to be removed. A record that expires keeps its time. A cache
 * may forget a record: then it is not there. To change a value atomically, read
 * it, make another of it, call this, and begin again at LP_MISMATCH.
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
 * to (excluded), in the order of their keys, as lp_tree_scan() does. What is on
 * disk only is not shown. It counts for none of them as a read.
 */
LP_API lp_status lp_cache_scan(lp_cache *cache,
                               const void *from,
                               size_t from_len,
                               const void *to,
                               size_t to_len,
                               lp_record_fn read,
                               void *context);

/** The same with the records whose keys begin with prefix. */
LP_API lp_status lp_cache_scan_prefix(lp_cache *cache,
                                      const void *prefix,
                                      size_t prefix_len,
                                      lp_record_fn read,
                                      void *context);

/**
 * What a cache holds and what it did. Set struct_size to sizeof(lp_cache_stats)
 * before the call; later versions add fields at the end. Those that begin with
 * disk_ are 0 where there is no disk tier, but disk_hits, which is part of
 * hits.
 */
typedef struct lp_cache_stats {
  /** In: the bytes of this struct that there are. Out: those that were written. */
  size_t struct_size;
  /** What it may hold, in bytes. */
  uint64_t memory_bytes;
  /** All that it holds, in bytes. */
  uint64_t bytes_held;
  /** The most that it was seen to hold, in bytes. */
  uint64_t peak_bytes;
  /**
   * Records in memory, those included whose time is over and that have not left
   * yet.
   */
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
   * Of these, those that got a value whose time was over, because another was
   * loading it.
   */
  uint64_t stale;
  /** Insertions. */
  uint64_t inserts;
  /** Bytes of the keys and values that were inserted. */
  uint64_t inserted_bytes;
  /** Removals. */
  uint64_t removes;
  /** Records that made room for others. */
  uint64_t evicted;
  /** Records that left because their time was over. */
  uint64_t expired;
  /** Values that were too long to be kept. */
  uint64_t too_large;
  /** Reads of records that could not be decoded, which count as misses. */
  uint64_t damaged;
  /** Records that came back to memory from the disk. */
  uint64_t promoted;
  /** Times that background work failed. */
  uint64_t background_failures;
  /** What the disk tier may use, in bytes. */
  uint64_t disk_capacity_bytes;
  /** What is in use of that. */
  uint64_t disk_used_bytes;
  /** Records on disk, those included of which there is a newer one. */
  uint64_t disk_records;
  /** Memory for what is on disk, in bytes. */
  uint64_t disk_index_bytes;
  /** Times that a key was looked for on disk. */
  uint64_t disk_lookups;
  /** Blocks of 4 KiB that this has read. */
  uint64_t disk_blocks_read;
  /** Bytes of the records that left memory for the disk. */
  uint64_t disk_admitted_bytes;
  /** Bytes that were written for them, merges included. */
  uint64_t disk_written_bytes;
  /** Records that left memory and that the disk did not take. */
  uint64_t disk_dropped;
  /** Reads and writes of the device that failed. */
  uint64_t disk_errors;
  /** Pages that were not what had been written. */
  uint64_t disk_damaged;
  /**
   * 1 if the disk was given up because writes failed again and again: the cache
   * goes on in memory.
   */
  uint64_t disk_has_failed;
} lp_cache_stats;

/** Fills in stats. It visits every leaf: not for every request. */
LP_API lp_status lp_cache_get_stats(lp_cache *cache, lp_cache_stats *stats);

/* ==========================================================================
 * Dictionaries
 *
 * Any number of threads may call these with the same dictionary, but
 * lp_dictionary_free(), which comes last.
 * ========================================================================== */

/**
 * Makes a dictionary of bytes that were trained or chosen, with an id of your
 * own, which sealed blocks name it by. Free it with lp_dictionary_free().
 */
LP_API lp_status lp_dictionary_new(uint32_t id,
                                   const void *bytes,
                                   size_t bytes_len,
                                   lp_dictionary **dictionary);

/**
 * Trains a dictionary of at most max_bytes (256 or more; 16 to 64 KiB are
 * usual) for a codec from samples of what is to be compressed: records, eight
 * and 2 KiB of them at least, some fifty times max_bytes at best. Its id
 * follows from its bytes. It takes about 100 ms a megabyte. LP_FAILED if
 * samples are too few, or the codec uses no dictionaries. Free it with
 * lp_dictionary_free().
 */
LP_API lp_status lp_dictionary_train(const char *codec_name,
                                     const lp_bytes *samples,
                                     size_t count,
                                     size_t max_bytes,
                                     lp_dictionary **dictionary);

/**
 * Tells the dictionary's id and its bytes, to be stored; id and bytes may each
 * be NULL. The bytes are there until it is freed.
 */
LP_API lp_status lp_dictionary_content(const lp_dictionary *dictionary,
                                       uint32_t *id,
                                       lp_bytes *bytes);

/** Frees it; NULL is allowed. */
LP_API void lp_dictionary_free(lp_dictionary *dictionary);

/* ==========================================================================
 * Codecs: compressing bytes of your own
 *
 * Any number of threads may call these with the same codec, but
 * lp_codec_free(), which comes last.
 * ========================================================================== */

/**
 * Is told of a codec: its name at a usual level, and why it cannot run here,
 * NULL where it can. The strings are there until it returns. 0 to go on,
 * anything else to stop.
 */
typedef int (*lp_codec_fn)(void *context, const char *name, const char *unavailable_because);

/**
 * Opens the codec of that name. LP_INVALID_ARGUMENT for a name that is none;
 * LP_UNAVAILABLE if a library or device is missing. Free it with
 * lp_codec_free().
 */
LP_API lp_status lp_codec_open(const char *name,
                               lp_codec **codec);

/** Frees it; NULL is allowed. */
LP_API void lp_codec_free(lp_codec *codec);

/** Calls tell with each codec that there is. */
LP_API lp_status lp_codec_list(lp_codec_fn tell, void *context);

/**
 * The most that raw_len bytes can become by any codec: room that lp_compress()
 * never finds too small.
 */
LP_API size_t lp_compress_bound(size_t raw_len);

/**
 * Compresses raw into block, which has room for capacity bytes, and writes the
 * block's length to block_len. With a NULL block (and a capacity of 0) it only
 * tells the length, which takes as long.
 *
 * The block says neither how long raw was nor which codec and dictionary made
 * it: keep that, or use lp_seal(), which does. Of lz4 it is a plain LZ4 block;
 * of deflate, zlib and qpl a raw deflate stream (RFC 1951); of zstd one without
 * magic number and header. A dictionary (NULL for none) is used by lz4 and
 * zstd, and ignored by others. What does not shrink is up to
 * lp_compress_bound() long.
 */
LP_API lp_status lp_compress(const lp_codec *codec,
                             const lp_dictionary *dictionary,
                             const void *raw,
                             size_t raw_len,
                             void *block,
                             size_t capacity,
                             size_t *block_len);

/**
 * Decompresses block into raw, which has to be as long as what was compressed.
 * LP_CORRUPT for whatever lp_compress() did not make of so many bytes with this
 * dictionary, as far as that can be seen: only a sealed block has a checksum.
 * No block makes it read or write elsewhere.
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
 * What a sealed block says of itself. Set struct_size to
 * sizeof(lp_sealed_label) before the call.
 */
typedef struct lp_sealed_label {
  /** In: the bytes of this struct that there are. Out: those that were written. */
  size_t struct_size;
  /** Raw bytes. */
  uint64_t raw_len;
  /** The id of the dictionary that it needs, where has_dictionary is not 0. */
  uint32_t dictionary_id;
  /** Whether it needs one. */
  int has_dictionary;
  /**
   * The codec without its level: "none" (stored as it is), "lz4", "zstd" or
   * "deflate". It ends with a zero byte.
   */
  char codec[16];
} lp_sealed_label;

/** The most that raw_len bytes become when they are sealed: 22 bytes more. */
LP_API size_t lp_seal_bound(size_t raw_len);

/**
 * Compresses raw into a sealed block, which has the codec, the dictionary's id,
 * the raw length and a checksum in front, 14 to 22 bytes. What does not shrink
 * is stored as it is. Of buffer, capacity and sealed_len holds what is said of
 * lp_compress(). LP_TOO_LONG past 1 GiB.
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
 * raw_len; with a NULL buffer (and a capacity of 0) it only tells the length,
 * and checks nothing but that it is possible. dictionaries are those that the
 * block may have been sealed with, count of them; there may be none.
 *
 * LP_CORRUPT for any damage; LP_UNKNOWN_DICTIONARY; LP_BUFFER_TOO_SMALL. What
 * is in buffer after a failure is undefined.
 */
LP_API lp_status lp_unseal(const void *sealed,
                           size_t sealed_len,
                           const lp_dictionary *const *dictionaries,
                           size_t count,
                           void *buffer,
                           size_t capacity,
                           size_t *raw_len);

/**
 * Tells what stands in front of a sealed block, and decodes nothing. LP_CORRUPT
 * if it is none.
 */
LP_API lp_status lp_sealed_read_label(const void *sealed,
                                      size_t sealed_len,
                                      lp_sealed_label *label);

#ifdef __cplusplus
}
#endif

#endif /* LEAFPRESS_H */
