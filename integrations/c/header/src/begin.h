/*
 * leafpress.h - Leafpress for C: maps and caches that keep their records compressed.
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
 * Statuses. A function that can fail returns an lp_status, LP_OK if it succeeded.
 * lp_last_error() describes the thread's last call that failed. No
 * argument makes a function crash that is a valid pointer of its type, or NULL.
 *
 * Pointers. A handle is NULL or was handed out by the library and not freed since. A pointer and a length are bytes
 * that the function reads during the call and keeps no pointer to; a pointer may be NULL where the length is 0. Bytes
 * that callbacks and lp_bytes show are not ended by a zero byte. Where a result is written, the pointer may be NULL
 * only where that is said. A result of a function that fails is undefined, but handles are NULL then, and lengths are
 * as said.
 *
 * Memory. What a function named _open, _new, _train or _dictionary hands out is freed by the function named
 * _free of its type, and by nothing else. Nothing else has to be freed.
 *
 * Callbacks are called by the thread that called the function, before it returns, and are given the context
 * unchanged. They may call the library, but not free what the function works with. They must not leave by
 * longjmp() or a C++ exception.
 *
 * Threads. Any number of threads may call functions on the same tree, cache, codec or dictionary at the same
 * time, but for those that free it, which come last. Options and cursors are for one thread at a time.
 *
 * Fork. In the child of a fork(), objects made before it must not be used: functions return LP_FORKED, and
 * functions that free have no effect. The child may make its own.
 */
