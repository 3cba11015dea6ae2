/* Trees: records, one at a time and many at once. */
#include "check.h"

static void reads(lp_tree *tree) {
    char buffer[8];
    size_t len = 99;
    OK(lp_tree_insert(tree, "key", 3, "value", 5));
    /* The length alone; too little room; just enough. */
    OK(lp_tree_get(tree, "key", 3, NULL, 0, &len));
    CHECK(len == 5);
    len = 0;
    SAYS(LP_BUFFER_TOO_SMALL, "room for 4 bytes, 5 are needed", lp_tree_get(tree, "key", 3, buffer, 4, &len));
    CHECK(len == 5);
    memset(buffer, '.', sizeof buffer);
    OK(lp_tree_get(tree, "key", 3, buffer, 5, &len));
    CHECK(len == 5 && memcmp(buffer, "value...", 8) == 0);
    IS(LP_NOT_FOUND, lp_tree_get(tree, "other", 5, buffer, 8, &len));
    CHECK(len == 0);
    SAYS(LP_INVALID_ARGUMENT, "the buffer is NULL", lp_tree_get(tree, "key", 3, NULL, 5, &len));
    SAYS(LP_INVALID_ARGUMENT, "the length is NULL", lp_tree_get(tree, "key", 3, buffer, 5, NULL));
    SAYS(LP_INVALID_ARGUMENT, "the key is NULL", lp_tree_get(tree, NULL, 3, buffer, 5, &len));
    SAYS(LP_INVALID_ARGUMENT, "cannot be", lp_tree_get(tree, "key", SIZE_MAX, buffer, 5, &len));

    Shown shown = {"", 0, 0, 0};
    OK(lp_tree_read(tree, "key", 3, show_value, &shown));
    CHECK(strcmp(shown.text, "value") == 0 && shown.calls == 1);
    shown.stop_at = 2;
    IS(LP_STOPPED, lp_tree_read(tree, "key", 3, show_value, &shown));
    IS(LP_NOT_FOUND, lp_tree_read(tree, "other", 5, show_value, &shown));
    SAYS(LP_INVALID_ARGUMENT, "callback is NULL", lp_tree_read(tree, "key", 3, NULL, NULL));
    OK(lp_tree_contains(tree, "key", 3));
    IS(LP_NOT_FOUND, lp_tree_contains(tree, "ke", 2));

    /* Empty keys and values are records. */
    OK(lp_tree_insert(tree, NULL, 0, NULL, 0));
    OK(lp_tree_get(tree, "", 0, buffer, 0, &len));
    CHECK(len == 0);
    OK(lp_tree_remove(tree, NULL, 0));
}

static void writes(lp_tree *tree) {
    char buffer[2000] = {0};
    uint64_t records = 99;
    IS(LP_TOO_LONG, lp_tree_insert(tree, buffer, LP_MAX_KEY_BYTES + 1, "", 0));
    OK(lp_tree_insert(tree, buffer, LP_MAX_KEY_BYTES, "", 0));
    OK(lp_tree_remove(tree, buffer, LP_MAX_KEY_BYTES));
    SAYS(LP_INVALID_ARGUMENT, "the value is NULL", lp_tree_insert(tree, "a", 1, NULL, 1));
    OK(lp_tree_insert_if_absent(tree, "a", 1, "1", 1));
    IS(LP_EXISTS, lp_tree_insert_if_absent(tree, "a", 1, "2", 1));
    IS(LP_NOT_FOUND, lp_tree_update_if_present(tree, "b", 1, "2", 1));
    OK(lp_tree_update_if_present(tree, "a", 1, "3", 1));
    Shown shown = {"", 0, 0, 0};
    OK(lp_tree_take(tree, "a", 1, show_value, &shown));
    CHECK(strcmp(shown.text, "3") == 0);
    IS(LP_NOT_FOUND, lp_tree_take(tree, "a", 1, show_value, &shown));
    IS(LP_INVALID_ARGUMENT, lp_tree_take(tree, "a", 1, NULL, &shown));
    IS(LP_NOT_FOUND, lp_tree_remove(tree, "a", 1));
    OK(lp_tree_clear(tree));
    OK(lp_tree_len(tree, &records));
    CHECK(records == 0);
    IS(LP_INVALID_ARGUMENT, lp_tree_len(tree, NULL));
}

static void swaps(lp_tree *tree) {
    Shown shown = {"", 0, 0, 0};
    OK(lp_tree_swap(tree, "s", 1, "one", 3, show_value, &shown));
    CHECK(shown.calls == 0);
    OK(lp_tree_swap(tree, "s", 1, "two", 3, show_value, &shown));
    CHECK(strcmp(shown.text, "one") == 0);
    IS(LP_INVALID_ARGUMENT, lp_tree_swap(tree, "s", 1, "two", 3, NULL, NULL));
    lp_bytes two = {"two", 3}, three = {"three", 5}, empty = {NULL, 0}, bad = {NULL, 4};
    SAYS(LP_MISMATCH, "another value", lp_tree_compare_and_swap(tree, "s", 1, &three, &two));
    IS(LP_MISMATCH, lp_tree_compare_and_swap(tree, "s", 1, NULL, &two));
    IS(LP_INVALID_ARGUMENT, lp_tree_compare_and_swap(tree, "s", 1, &bad, &two));
    OK(lp_tree_compare_and_swap(tree, "s", 1, &two, &empty));
    OK(lp_tree_compare_and_swap(tree, "s", 1, &empty, NULL));
    OK(lp_tree_compare_and_swap(tree, "s", 1, NULL, &three));
    OK(lp_tree_remove(tree, "s", 1));
}

static void ends(lp_tree *tree) {
    Shown shown = {"", 0, 0, 0};
    IS(LP_NOT_FOUND, lp_tree_first(tree, show_record, &shown));
    IS(LP_NOT_FOUND, lp_tree_last(tree, show_record, &shown));
    IS(LP_NOT_FOUND, lp_tree_pop_first(tree, show_record, &shown));
    IS(LP_NOT_FOUND, lp_tree_pop_last(tree, show_record, &shown));
    OK(lp_tree_insert(tree, "b", 1, "2", 1));
    OK(lp_tree_insert(tree, "a", 1, "1", 1));
    OK(lp_tree_insert(tree, "c", 1, "3", 1));
    OK(lp_tree_first(tree, show_record, &shown));
    OK(lp_tree_last(tree, show_record, &shown));
    OK(lp_tree_pop_first(tree, show_record, &shown));
    OK(lp_tree_pop_last(tree, show_record, &shown));
    OK(lp_tree_pop_last(tree, show_record, &shown));
    CHECK(strcmp(shown.text, "a=1 c=3 a=1 c=3 b=2 ") == 0);
    IS(LP_INVALID_ARGUMENT, lp_tree_first(tree, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_last(tree, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_pop_first(tree, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_pop_last(tree, NULL, NULL));
}

typedef struct {
    unsigned next, end, gives_up_at, step;
    char key[32], value[256];
} Records;

static int next_record(void *context, lp_bytes *key, lp_bytes *value) {
    Records *records = (Records *)context;
    if (records->next == records->gives_up_at)
        return -1;
    if (records->next >= records->end)
        return 0;
    key->data = records->key;
    key->len = key_of(records->next, records->key);
    value->data = records->value;
    value->len = value_of(records->next, records->value);
    records->next += records->step;
    return 1;
}

static int bad_record(void *context, lp_bytes *key, lp_bytes *value) {
    (void)context, (void)value;
    key->data = NULL;
    key->len = 3;
    return 1;
}

static void many(lp_tree *tree) {
    Records records = {0, 5000, ~0u, 1, "", ""};
    uint64_t inserted = 0;
    OK(lp_tree_load(tree, next_record, &records, &inserted));
    CHECK(inserted == 5000);
    Records again = {4000, 6000, 5500, 1, "", ""};
    IS(LP_STOPPED, lp_tree_load(tree, next_record, &again, &inserted));
    CHECK(inserted == 500);
    SAYS(LP_INVALID_ARGUMENT, "the key is NULL", lp_tree_load(tree, bad_record, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_load(tree, NULL, NULL, NULL));
    OK(lp_tree_insert(tree, "e", 1, "", 0));
    lp_bytes keys[] = {{"user:00000007", 13}, {"user:7", 6}, {"e", 1}, {"user:00005499", 13}};
    char expected[1024], value[256];
    Shown shown = {"", 0, 0, 0};
    OK(lp_tree_get_many(tree, keys, 4, show_found, &shown));
    value_of(7, value);
    sprintf(expected, "%s -  ", value);
    value_of(5499, value);
    sprintf(expected + strlen(expected), "%s ", value);
    CHECK(strcmp(shown.text, expected) == 0);
    Shown stopped = {"", 0, 0, 2};
    IS(LP_STOPPED, lp_tree_get_many(tree, keys, 4, show_found, &stopped));
    CHECK(stopped.calls == 2);
    OK(lp_tree_get_many(tree, NULL, 0, show_found, &shown));
    IS(LP_INVALID_ARGUMENT, lp_tree_get_many(tree, NULL, 2, show_found, &shown));
    IS(LP_INVALID_ARGUMENT, lp_tree_get_many(tree, keys, 2, NULL, &shown));
    lp_bytes bad[] = {{NULL, 4}};
    IS(LP_INVALID_ARGUMENT, lp_tree_get_many(tree, bad, 1, show_found, &shown));
    OK(lp_tree_validate(tree));
}

/* No function crashes at NULL. */
static void nulls(void) {
    size_t len;
    uint64_t number;
    lp_tree *tree;
    lp_dictionary *dictionary;
    lp_tree_stats stats;
    stats.struct_size = sizeof stats;
    IS(LP_INVALID_ARGUMENT, lp_tree_open(NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_insert(NULL, "", 0, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_tree_insert_if_absent(NULL, "", 0, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_tree_update_if_present(NULL, "", 0, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_tree_get(NULL, "", 0, NULL, 0, &len));
    IS(LP_INVALID_ARGUMENT, lp_tree_read(NULL, "", 0, show_value, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_contains(NULL, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_tree_remove(NULL, "", 0));
    IS(LP_INVALID_ARGUMENT, lp_tree_take(NULL, "", 0, show_value, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_swap(NULL, "", 0, "", 0, show_value, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_compare_and_swap(NULL, "", 0, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_first(NULL, show_record, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_get_many(NULL, NULL, 0, show_found, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_load(NULL, next_record, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_len(NULL, &number));
    IS(LP_INVALID_ARGUMENT, lp_tree_scan(NULL, NULL, 0, NULL, 0, show_record, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_scan_prefix(NULL, NULL, 0, show_record, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_remove_range(NULL, NULL, 0, NULL, 0, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_settle(NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_compact(NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_train(NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_validate(NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_dictionary(NULL, &dictionary));
    CHECK(dictionary == NULL);
    IS(LP_INVALID_ARGUMENT, lp_tree_get_stats(NULL, &stats));
    lp_tree_free(NULL);
    OK(lp_tree_open(NULL, &tree));
    lp_tree_free(tree);
}

void test_tree(void) {
    nulls();
    const char *codecs[] = {"none", "lz4", "zstd:3", "deflate:1", "onpair", "trial", "auto"};
    for (size_t at = 0; at < sizeof codecs / sizeof *codecs; at++) {
        lp_tree *tree = tree_with(codecs[at]);
        reads(tree);
        writes(tree);
        swaps(tree);
        ends(tree);
        many(tree);
        lp_tree_free(tree);
    }
}
