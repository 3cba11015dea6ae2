/* Statuses, messages, versions, options. */
#include "check.h"

void test_status(void) {
    const char *names[] = {"LP_OK", "LP_NOT_FOUND", "LP_EXISTS", "LP_MISMATCH", "LP_STOPPED", "LP_BUFFER_TOO_SMALL",
                           "LP_INVALID_ARGUMENT", "LP_TOO_LONG", "LP_CORRUPT", "LP_UNKNOWN_DICTIONARY",
                           "LP_UNAVAILABLE", "LP_OUT_OF_MEMORY", "LP_IO", "LP_BACKGROUND", "LP_LOAD_FAILED",
                           "LP_FORKED", "LP_FAILED", "LP_PANIC"};
    for (int status = 0; status <= (int)LP_PANIC; status++)
        CHECK(strcmp(lp_status_name(status), names[status]) == 0);
    CHECK(strcmp(lp_status_name(-1), "unknown status") == 0);
    CHECK(strcmp(lp_status_name(LP_PANIC + 1), "unknown status") == 0);
    CHECK(strcmp(lp_version(), LP_VERSION) == 0);
    CHECK(lp_last_error() != NULL);
    /* A success leaves the message of the failure before it. */
    IS(LP_INVALID_ARGUMENT, lp_tree_clear(NULL));
    lp_tree *tree = tree_with("none");
    CHECK(strcmp(lp_last_error(), "the tree is NULL") == 0);
    lp_tree_free(tree);
}

static void refuse(lp_options *options, const char *name, const char *value, const char *says) {
    SAYS(LP_INVALID_ARGUMENT, says, lp_options_set(options, name, value));
}

/* Sets one option, which opening is to refuse. */
static void refuse_tree(const char *name, const char *value, const char *says) {
    lp_options *options = options_with(name, value);
    lp_tree *tree = (lp_tree *)options;
    SAYS(LP_INVALID_ARGUMENT, says, lp_tree_open(options, &tree));
    CHECK(tree == NULL);
    lp_options_free(options);
}

static void refuse_cache(const char *name, const char *value, lp_status status, const char *says) {
    lp_options *options = options_with(name, value);
    lp_cache *cache = (lp_cache *)options;
    SAYS(status, says, lp_cache_open(options, &cache));
    CHECK(cache == NULL);
    lp_options_free(options);
}

static void never(void *context, const void *key, size_t key_len, const void *value, size_t value_len,
                  lp_removal cause) {
    (void)context, (void)key, (void)key_len, (void)value, (void)value_len, (void)cause;
    abort();
}

void test_options(void) {
    SAYS(LP_INVALID_ARGUMENT, "where to put the handle is NULL", lp_options_new(NULL));
    lp_options_free(NULL);
    lp_options *options = options_with(NULL, NULL);
    refuse(options, "codek", "lz4", "memory_bytes");
    refuse(options, "codec", "lz5", "zstd:");
    refuse(options, "memory_bytes", "much", "memory_bytes: `much` is not a number of bytes");
    refuse(options, "shards", "-1", "shards");
    refuse(options, "dictionary", "yes", "lp_options_set_dictionary()");
    refuse(options, "temperature_rule", "costs:9999", "temperature_rule");
    refuse(options, "ttl_ms", "1s", "ttl_ms");
    refuse(options, NULL, "1", "name is NULL");
    refuse(options, "codec", NULL, "value is NULL");
    refuse(options, "\xff\xfe", "1", "not UTF-8");
    refuse(NULL, "codec", "lz4", "options object is NULL");
    IS(LP_INVALID_ARGUMENT, lp_options_set_number(options, "codec", 3));
    IS(LP_INVALID_ARGUMENT, lp_options_set_number(NULL, "shards", 3));
    OK(lp_options_set_number(options, "shards", 3));
    OK(lp_options_set_number(options, "shards", 2));
    OK(lp_options_set(options, "dictionary", "off"));
    OK(lp_options_set(options, "temperature_rule", "costs:20"));
    OK(lp_options_set(options, "leaf_bytes", "8KiB"));
    OK(lp_options_set(options, "frame_bytes", "1024"));
    OK(lp_options_set(options, "inline_value_bytes", "128"));
    OK(lp_options_set(options, "landing_bytes", "2 KiB"));
    OK(lp_options_set(options, "background_threads", "1"));
    OK(lp_options_set(options, "load_threads", "2"));
    OK(lp_options_set(options, "dictionary_bytes", "4KiB"));
    lp_tree *tree = NULL;
    OK(lp_tree_open(options, &tree));
    OK(lp_tree_insert(tree, "a", 1, "b", 1));
    lp_tree_free(tree);
    lp_options_free(options);

    refuse_tree("shards", "0", "shards");
    refuse_tree("leaf_bytes", "1", "leaf_bytes");
    refuse_tree("memory_bytes", "64MiB", "`memory_bytes` is not an option of a tree");
    refuse_cache("shards", "1", LP_INVALID_ARGUMENT, "`shards` is not an option of a cache");
    refuse_cache("memory_bytes", "1", LP_INVALID_ARGUMENT, "memory: 1 bytes are fewer");
    refuse_cache("ttl_ms", "0", LP_INVALID_ARGUMENT, "from 1 ms to 10 years");
    refuse_cache("time_to_idle_ms", "5", LP_INVALID_ARGUMENT, "from 1 s to 10 years");
    refuse_cache("disk_bytes", "64MiB", LP_INVALID_ARGUMENT, "disk_path and disk_bytes");
    refuse_cache("disk_codec", "lz4", LP_INVALID_ARGUMENT, "disk_path and disk_bytes");

    /* What is of one kind only. */
    options = options_with(NULL, NULL);
    OK(lp_options_set_listener(options, never, NULL));
    SAYS(LP_INVALID_ARGUMENT, "listener", lp_tree_open(options, &tree));
    OK(lp_options_set_listener(options, NULL, NULL));
    lp_dictionary *dictionary = NULL;
    OK(lp_dictionary_new(7, "words words words", 17, &dictionary));
    OK(lp_options_set_dictionary(options, dictionary));
    lp_dictionary_free(dictionary);
    lp_cache *cache = NULL;
    SAYS(LP_INVALID_ARGUMENT, "dictionary", lp_cache_open(options, &cache));
    OK(lp_tree_open(options, &tree));
    OK(lp_tree_dictionary(tree, &dictionary));
    uint32_t id = 0;
    lp_bytes bytes = {NULL, 0};
    OK(lp_dictionary_content(dictionary, &id, &bytes));
    CHECK(id == 7 && bytes.len == 17 && memcmp(bytes.data, "words words words", 17) == 0);
    lp_dictionary_free(dictionary);
    lp_tree_free(tree);
    OK(lp_options_set_dictionary(options, NULL));
    IS(LP_INVALID_ARGUMENT, lp_options_set_dictionary(NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_options_set_listener(NULL, NULL, NULL));
    lp_options_free(options);
}
