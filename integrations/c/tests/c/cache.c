/* Caches: in memory, with a disk, with a loader. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static lp_cache *open_cache(lp_options *options) {
    lp_cache *cache = NULL;
    OK(lp_cache_open(options, &cache));
    return cache;
}

static void nulls(void) {
    size_t len;
    uint64_t number;
    lp_cache_stats stats;
    stats.struct_size = sizeof stats;
    IS(LP_INVALID_ARGUMENT, lp_cache_open(NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_close(NULL));
    lp_cache_free(NULL);
    IS(LP_INVALID_ARGUMENT, lp_cache_insert(NULL, "", 0, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_cache_insert_ttl(NULL, "", 0, "", 0, 1000));
    IS(LP_INVALID_ARGUMENT, lp_cache_insert_entry(NULL, "", 0, "", 0, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_invalidate_tag(NULL, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_cache_get(NULL, "", 0, NULL, 0, &len));
    IS(LP_INVALID_ARGUMENT, lp_cache_read(NULL, "", 0, show_value, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_get_many(NULL, NULL, 0, show_found, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_contains(NULL, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_cache_remove(NULL, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_cache_invalidate(NULL, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_cache_take(NULL, "", 0, show_value, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_swap(NULL, "", 0, "", 0, show_value, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_compare_and_swap(NULL, "", 0, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_clear(NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_len(NULL, &number));
    IS(LP_INVALID_ARGUMENT, lp_cache_set_memory(NULL, 1 << 30));
    IS(LP_INVALID_ARGUMENT, lp_cache_settle(NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_validate(NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_describe(NULL, NULL, 0, &len));
    IS(LP_INVALID_ARGUMENT, lp_cache_scan(NULL, NULL, 0, NULL, 0, show_record, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_scan_prefix(NULL, NULL, 0, show_record, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_get_stats(NULL, &stats));
    IS(LP_INVALID_ARGUMENT, lp_load_set(NULL, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_load_set_ttl(NULL, 1000));
}

static void records(lp_cache *cache) {
    char buffer[64];
    size_t len;
    OK(lp_cache_insert(cache, "a", 1, "one", 3));
    OK(lp_cache_insert_ttl(cache, "b", 1, "two", 3, 60000));
    IS(LP_INVALID_ARGUMENT, lp_cache_insert_ttl(cache, "c", 1, "x", 1, 0));
    OK(lp_cache_get(cache, "a", 1, buffer, sizeof buffer, &len));
    CHECK(len == 3 && memcmp(buffer, "one", 3) == 0);
    IS(LP_BUFFER_TOO_SMALL, lp_cache_get(cache, "b", 1, buffer, 2, &len));
    CHECK(len == 3);
    IS(LP_NOT_FOUND, lp_cache_get(cache, "c", 1, buffer, 2, &len));
    IS(LP_INVALID_ARGUMENT, lp_cache_get(cache, "c", 1, buffer, 2, NULL));
    Shown shown = {"", 0, 0, 0};
    OK(lp_cache_read(cache, "b", 1, show_value, &shown));
    IS(LP_NOT_FOUND, lp_cache_read(cache, "c", 1, show_value, &shown));
    IS(LP_INVALID_ARGUMENT, lp_cache_read(cache, "b", 1, NULL, NULL));
    CHECK(strcmp(shown.text, "two") == 0);
    OK(lp_cache_contains(cache, "a", 1));
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "c", 1));
    lp_bytes keys[] = {{"b", 1}, {"c", 1}, {"a", 1}};
    Shown many = {"", 0, 0, 0};
    OK(lp_cache_get_many(cache, keys, 3, show_found, &many));
    CHECK(strcmp(many.text, "two - one ") == 0);
    IS(LP_INVALID_ARGUMENT, lp_cache_get_many(cache, NULL, 3, show_found, &many));
    Shown all = {"", 0, 0, 0};
    OK(lp_cache_scan(cache, NULL, 0, NULL, 0, show_record, &all));
    OK(lp_cache_scan(cache, "b", 1, "c", 1, show_record, &all));
    OK(lp_cache_scan_prefix(cache, "a", 1, show_record, &all));
    CHECK(strcmp(all.text, "a=one b=two b=two a=one ") == 0);
    all.stop_at = 5;
    IS(LP_STOPPED, lp_cache_scan(cache, NULL, 0, NULL, 0, show_record, &all));
    IS(LP_INVALID_ARGUMENT, lp_cache_scan(cache, NULL, 0, NULL, 0, NULL, &all));
    IS(LP_INVALID_ARGUMENT, lp_cache_scan_prefix(cache, "", 0, NULL, &all));
    Shown old = {"", 0, 0, 0};
    OK(lp_cache_swap(cache, "a", 1, "new", 3, show_value, &old));
    lp_bytes fresh = {"new", 3}, newest = {"newest", 6};
    IS(LP_MISMATCH, lp_cache_compare_and_swap(cache, "a", 1, &newest, &fresh));
    OK(lp_cache_compare_and_swap(cache, "a", 1, &fresh, &newest));
    OK(lp_cache_take(cache, "a", 1, show_value, &old));
    CHECK(strcmp(old.text, "onenewest") == 0);
    IS(LP_NOT_FOUND, lp_cache_take(cache, "a", 1, show_value, &old));
    OK(lp_cache_remove(cache, "b", 1));
    IS(LP_NOT_FOUND, lp_cache_remove(cache, "b", 1));
    OK(lp_cache_insert(cache, "c", 1, "x", 1));
    OK(lp_cache_invalidate(cache, "c", 1));
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "c", 1));
    OK(lp_cache_invalidate(cache, "c", 1));
}

typedef struct {
    pthread_mutex_t lock;
    int by_cause[4];
} Left;

static void count_left(void *context, const void *key, size_t key_len, const void *value, size_t value_len,
                       lp_removal cause) {
    Left *left = (Left *)context;
    CHECK(key != NULL && key_len > 0 && (value != NULL || value_len == 0));
    pthread_mutex_lock(&left->lock);
    left->by_cause[cause]++;
    pthread_mutex_unlock(&left->lock);
}

static void budget(void) {
    char key[32], value[256];
    Left left;
    memset(left.by_cause, 0, sizeof left.by_cause);
    pthread_mutex_init(&left.lock, NULL);
    lp_options *options = options_with("memory_bytes", "4MiB");
    OK(lp_options_set(options, "codec", "none"));
    OK(lp_options_set(options, "name", "of a test"));
    OK(lp_options_set_listener(options, count_left, &left));
    lp_cache *cache = open_cache(options);
    lp_options_free(options);
    OK(lp_cache_insert(cache, "one", 3, "1", 1));
    OK(lp_cache_insert(cache, "one", 3, "2", 1));
    OK(lp_cache_remove(cache, "one", 3));
    for (unsigned number = 0; number < 60000; number++)
        OK(lp_cache_insert(cache, key, key_of(number, key), value, value_of(number, value)));
    OK(lp_cache_settle(cache));
    OK(lp_cache_validate(cache));
    lp_cache_stats stats;
    stats.struct_size = sizeof stats;
    OK(lp_cache_get_stats(cache, &stats));
    CHECK(stats.bytes_held <= stats.memory_bytes && stats.memory_bytes == 4 << 20);
    CHECK(stats.inserts == 60002 && stats.evicted > 0 && stats.records < 60000);
    CHECK(stats.disk_capacity_bytes == 0);
    CHECK(left.by_cause[LP_REMOVAL_EVICTED] > 0 && left.by_cause[LP_REMOVAL_REMOVED] == 1);
    CHECK(left.by_cause[LP_REMOVAL_REPLACED] == 1);
    IS(LP_INVALID_ARGUMENT, lp_cache_set_memory(cache, 17));
    OK(lp_cache_set_memory(cache, 16 << 20));
    stats.struct_size = 1;
    IS(LP_INVALID_ARGUMENT, lp_cache_get_stats(cache, &stats));
    IS(LP_INVALID_ARGUMENT, lp_cache_get_stats(cache, NULL));
    char text[4096];
    size_t len = 0, again = 0;
    OK(lp_cache_describe(cache, NULL, 0, &len));
    CHECK(len > 100);
    IS(LP_BUFFER_TOO_SMALL, lp_cache_describe(cache, text, 10, &again));
    OK(lp_cache_describe(cache, text, sizeof text, &again));
    CHECK(strlen(text) == again && strstr(text, "memory") != NULL);
    uint64_t count = 0;
    OK(lp_cache_len(cache, &count));
    CHECK(count > 0);
    OK(lp_cache_clear(cache));
    OK(lp_cache_len(cache, &count));
    CHECK(count == 0);
    IS(LP_INVALID_ARGUMENT, lp_cache_len(cache, NULL));
    lp_cache_free(cache);
    pthread_mutex_destroy(&left.lock);
}

static void expiry(void) {
    lp_options *options = options_with("ttl_ms", "1000");
    OK(lp_options_set(options, "time_to_idle_ms", "5000"));
    OK(lp_options_set(options, "stale_while_revalidate_ms", "1000"));
    OK(lp_options_set(options, "share", "fixed:10"));
    OK(lp_options_set(options, "miss_cost_us", "200"));
    IS(LP_INVALID_ARGUMENT, lp_options_set(options, "share", "raw"));
    lp_cache *cache = open_cache(options);
    lp_options_free(options);
    OK(lp_cache_insert(cache, "short", 5, "1", 1));
    OK(lp_cache_insert_ttl(cache, "long", 4, "2", 1, 3600000));
    struct timespec pause = {1, 200000000};
    nanosleep(&pause, NULL);
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "short", 5));
    OK(lp_cache_contains(cache, "long", 4));

    /* A record's own times and tags. */
    lp_bytes tags[9];
    for (size_t n = 0; n < 9; n++)
        tags[n].data = &"123456789"[n], tags[n].len = 1;
    lp_insert_options own = {LP_NEVER, 0, tags, 8};
    OK(lp_cache_insert_entry(cache, "tagged", 6, "3", 1, &own));
    own.tag_count = 9;
    IS(LP_INVALID_ARGUMENT, lp_cache_insert_entry(cache, "tags", 4, "3", 1, &own));
    own.tags = NULL;
    IS(LP_INVALID_ARGUMENT, lp_cache_insert_entry(cache, "tags", 4, "3", 1, &own));
    own.ttl_ms = 0;
    own.time_to_idle_ms = 999;
    own.tag_count = 0;
    IS(LP_INVALID_ARGUMENT, lp_cache_insert_entry(cache, "idle", 4, "3", 1, &own));
    own.ttl_ms = LP_NEVER;
    own.time_to_idle_ms = 1000;
    OK(lp_cache_insert_entry(cache, "idle", 4, "3", 1, &own));
    OK(lp_cache_insert_entry(cache, "default", 7, "3", 1, NULL));
    nanosleep(&pause, NULL);
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "idle", 4));
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "default", 7));
    OK(lp_cache_contains(cache, "tagged", 6));
    OK(lp_cache_invalidate_tag(cache, "0", 1));
    OK(lp_cache_contains(cache, "tagged", 6));
    OK(lp_cache_invalidate_tag(cache, "8", 1));
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "tagged", 6));
    /* Without a disk tier it is freed. */
    OK(lp_cache_close(cache));
}

void test_cache(void) {
    nulls();
    lp_cache *cache = open_cache(NULL);
    records(cache);
    lp_cache_free(cache);
    budget();
    expiry();
}

void test_cache_disk(void) {
    char path[] = "/tmp/leafpress-test-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    char key[32], value[256], found[256];
    size_t len;
    lp_options *options = options_with("memory_bytes", "4MiB");
    OK(lp_options_set(options, "disk_path", path));
    OK(lp_options_set(options, "disk_bytes", "32MiB"));
    OK(lp_options_set(options, "disk_codec", "lz4"));
    OK(lp_options_set(options, "disk_write_bytes_per_s", "1GiB"));
    lp_cache *cache = open_cache(options);
    lp_cache *other = NULL;
    SAYS(LP_IO, path, lp_cache_open(options, &other));
    CHECK(other == NULL);
    for (unsigned number = 0; number < 60000; number++)
        OK(lp_cache_insert(cache, key, key_of(number, key), value, value_of(number, value)));
    OK(lp_cache_settle(cache));
    lp_cache_stats stats;
    stats.struct_size = sizeof stats;
    OK(lp_cache_get_stats(cache, &stats));
    CHECK(stats.disk_capacity_bytes > 0 && stats.disk_has_failed == 0);
    OK(lp_cache_close(cache));
    /* The next has what this one left. */
    cache = open_cache(options);
    unsigned hits = 0;
    for (unsigned number = 0; number < 60000; number += 100) {
        lp_status status = lp_cache_get(cache, key, key_of(number, key), found, sizeof found, &len);
        if (status == LP_NOT_FOUND)
            continue;
        OK(status);
        CHECK(len == value_of(number, value) && memcmp(found, value, len) == 0);
        hits++;
    }
    CHECK(hits > 500);
    lp_cache_free(cache);
    /* One that was freed leaves nothing. */
    cache = open_cache(options);
    IS(LP_NOT_FOUND, lp_cache_contains(cache, key, key_of(100, key)));
    lp_cache_free(cache);
    /* Unless it is to be found again all the same. */
    SAYS(LP_INVALID_ARGUMENT, "`often` is not known", lp_options_set(options, "disk_recover_after_crash", "often"));
    OK(lp_options_set(options, "disk_recover_after_crash", "true"));
    cache = open_cache(options);
    for (unsigned number = 0; number < 300000; number++)
        OK(lp_cache_insert(cache, key, key_of(number, key), value, value_of(number, value)));
    OK(lp_cache_settle(cache));
    lp_cache_free(cache);
    cache = open_cache(options);
    hits = 0;
    for (unsigned number = 0; number < 60000; number += 100)
        hits += lp_cache_contains(cache, key, key_of(number, key)) == LP_OK;
    /* What was in memory alone is gone. */
    CHECK(hits > 100);
    lp_cache_free(cache);
    char extra[64];
    snprintf(extra, sizeof extra, "%s.epochs", path);
    CHECK(unlink(extra) == 0);
    snprintf(extra, sizeof extra, "%s.runs", path);
    CHECK(unlink(extra) == 0);
    OK(lp_options_set(options, "disk_path", "/no/such/directory/file"));
    SAYS(LP_IO, "/no/such/directory/file", lp_cache_open(options, &cache));
    lp_options_free(options);
    unlink(path);
}

/* A file that no cache wrote is left unchanged, unless it is to be overwritten. */
void test_cache_overwrite(void) {
    char path[] = "/tmp/leafpress-test-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    CHECK(write(file, "precious", 8) == 8);
    lp_options *options = options_with("disk_path", path);
    OK(lp_options_set(options, "disk_bytes", "16MiB"));
    lp_cache *cache = NULL;
    SAYS(LP_IO, path, lp_cache_open(options, &cache));
    SAYS(LP_IO, "overwrite", lp_cache_open(options, &cache));
    char found[16];
    CHECK(cache == NULL && pread(file, found, sizeof found, 0) == 8 && memcmp(found, "precious", 8) == 0);
    SAYS(LP_INVALID_ARGUMENT, "`yes` is not known", lp_options_set(options, "disk_overwrite", "yes"));
    OK(lp_options_set(options, "disk_overwrite", "true"));
    cache = open_cache(options);
    OK(lp_cache_insert(cache, "key", 3, "value", 5));
    OK(lp_cache_close(cache));
    OK(lp_options_set(options, "disk_overwrite", "false"));
    cache = open_cache(options);
    OK(lp_cache_contains(cache, "key", 3));
    lp_cache_free(cache);
    lp_options_free(options);
    close(file);
    unlink(path);
    options = options_with("disk_overwrite", "true");
    SAYS(LP_INVALID_ARGUMENT, "disk_path", lp_cache_open(options, &cache));
    lp_options_free(options);
}

/* A loader that counts its calls, and answers as configured. */
typedef struct {
    pthread_mutex_t lock;
    lp_cache *cache;
    int calls;
    int returns;
    int sets;
    uint64_t ttl_ms;
    lp_status of_nested;
} Loader;

static int load(void *context, const void *key, size_t key_len, lp_load *load_) {
    Loader *loader = (Loader *)context;
    pthread_mutex_lock(&loader->lock);
    loader->calls++;
    pthread_mutex_unlock(&loader->lock);
    if (loader->cache != NULL) {
        /* Another key may be loaded, this one not. */
        Loader inner = *loader;
        inner.cache = NULL;
        OK(lp_cache_get_or_load(loader->cache, "nested", 6, load, &inner, NULL, NULL));
        loader->of_nested = lp_cache_get_or_load(loader->cache, key, key_len, load, &inner, NULL, NULL);
    }
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
    if (loader->sets) {
        OK(lp_load_set(load_, "old", 3));
        IS(LP_INVALID_ARGUMENT, lp_load_set(load_, NULL, 3));
        OK(lp_load_set(load_, key, key_len));
        if (loader->ttl_ms > 0)
            OK(lp_load_set_ttl(load_, loader->ttl_ms));
    }
    return loader->returns;
}

static void *load_in_thread(void *context) {
    Loader *loader = (Loader *)context;
    Shown shown = {"", 0, 0, 0};
    OK(lp_cache_get_or_load(loader->cache, "shared", 6, load, &((Loader *)context)[1], show_value, &shown));
    CHECK(strcmp(shown.text, "shared") == 0);
    return NULL;
}

void test_cache_load(void) {
    lp_cache *cache = open_cache(NULL);
    Loader loaders[2];
    for (int at = 0; at < 2; at++) {
        pthread_mutex_init(&loaders[at].lock, NULL);
        loaders[at].cache = NULL;
        loaders[at].calls = loaders[at].returns = 0;
        loaders[at].sets = 1;
        loaders[at].ttl_ms = 0;
        loaders[at].of_nested = LP_OK;
    }
    Loader *loader = &loaders[1];
    Shown shown = {"", 0, 0, 0};
    OK(lp_cache_get_or_load(cache, "k", 1, load, loader, show_value, &shown));
    OK(lp_cache_get_or_load(cache, "k", 1, load, loader, show_value, &shown));
    OK(lp_cache_get_or_load(cache, "k", 1, load, loader, NULL, NULL));
    CHECK(loader->calls == 1 && strcmp(shown.text, "kk") == 0);
    shown.stop_at = 3;
    IS(LP_STOPPED, lp_cache_get_or_load(cache, "k", 1, load, loader, show_value, &shown));
    /* Failures are not kept. */
    loader->returns = LP_NOT_FOUND;
    IS(LP_NOT_FOUND, lp_cache_get_or_load(cache, "n", 1, load, loader, NULL, NULL));
    loader->returns = 77;
    SAYS(LP_LOAD_FAILED, "returned 77", lp_cache_get_or_load(cache, "n", 1, load, loader, NULL, NULL));
    loader->returns = 0;
    loader->sets = 0;
    SAYS(LP_LOAD_FAILED, "lp_load_set()", lp_cache_get_or_load(cache, "n", 1, load, loader, NULL, NULL));
    loader->sets = 1;
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "n", 1));
    loader->cache = cache;
    OK(lp_cache_get_or_load(cache, "outer", 5, load, loader, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, loader->of_nested);
    OK(lp_cache_contains(cache, "nested", 6));
    loader->cache = NULL;
    IS(LP_INVALID_ARGUMENT, lp_cache_get_or_load(cache, "n", 1, NULL, NULL, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_get_or_load(cache, NULL, 1, load, loader, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_cache_get_or_load(NULL, "n", 1, load, loader, NULL, NULL));
    /* What was loaded lives so long. */
    loader->ttl_ms = 1000;
    OK(lp_cache_get_or_load(cache, "short", 5, load, loader, NULL, NULL));
    OK(lp_cache_contains(cache, "short", 5));
    struct timespec pause = {1, 200000000};
    nanosleep(&pause, NULL);
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "short", 5));
    loader->ttl_ms = UINT64_MAX;
    /* What cannot be stored was loaded all the same. */
    OK(lp_cache_get_or_load(cache, "short", 5, load, loader, NULL, NULL));
    IS(LP_NOT_FOUND, lp_cache_contains(cache, "short", 5));
    loader->ttl_ms = 0;
    /* Of several threads one loads. */
    loader->calls = 0;
    loaders[0].cache = cache;
    pthread_t threads[4];
    for (int at = 0; at < 4; at++)
        CHECK(pthread_create(&threads[at], NULL, load_in_thread, loaders) == 0);
    for (int at = 0; at < 4; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    CHECK(loader->calls == 1);
    lp_cache_free(cache);
    for (int at = 0; at < 2; at++)
        pthread_mutex_destroy(&loaders[at].lock);
}
