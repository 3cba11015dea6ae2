/* Trees: scans, cursors, removal of ranges, upkeep, figures. */
#include "check.h"

static lp_tree *letters(void) {
    lp_tree *tree = tree_with("lz4");
    for (char letter = 'a'; letter <= 'h'; letter++)
        OK(lp_tree_insert(tree, &letter, 1, &letter, 1));
    return tree;
}

static void scan_shows(lp_tree *tree, const char *from, const char *to, const char *expected) {
    Shown shown = {"", 0, 0, 0};
    OK(lp_tree_scan(tree, from, from ? strlen(from) : 0, to, to ? strlen(to) : 0, show_record, &shown));
    CHECK(strcmp(shown.text, expected) == 0);
}

static void scans(void) {
    lp_tree *tree = letters();
    scan_shows(tree, "c", "e", "c=c d=d ");
    scan_shows(tree, "ff", NULL, "g=g h=h ");
    scan_shows(tree, NULL, "b", "a=a ");
    scan_shows(tree, "", "c", "a=a b=b ");
    scan_shows(tree, "e", "c", "");
    scan_shows(tree, "c", "c", "");
    scan_shows(tree, NULL, "", "");
    Shown shown = {"", 0, 0, 3};
    IS(LP_STOPPED, lp_tree_scan(tree, NULL, 0, NULL, 0, show_record, &shown));
    CHECK(strcmp(shown.text, "a=a b=b c=c ") == 0);
    IS(LP_INVALID_ARGUMENT, lp_tree_scan(tree, NULL, 1, NULL, 0, show_record, &shown));
    IS(LP_INVALID_ARGUMENT, lp_tree_scan(tree, NULL, 0, NULL, 1, show_record, &shown));
    IS(LP_INVALID_ARGUMENT, lp_tree_scan(tree, NULL, 0, NULL, 0, NULL, &shown));
    OK(lp_tree_insert(tree, "bee", 3, "1", 1));
    OK(lp_tree_insert(tree, "bet", 3, "2", 1));
    Shown prefixed = {"", 0, 0, 0};
    OK(lp_tree_scan_prefix(tree, "be", 2, show_record, &prefixed));
    CHECK(strcmp(prefixed.text, "bee=1 bet=2 ") == 0);
    OK(lp_tree_scan_prefix(tree, "x", 1, show_record, &prefixed));
    CHECK(prefixed.calls == 2);
    IS(LP_INVALID_ARGUMENT, lp_tree_scan_prefix(tree, NULL, 2, show_record, &prefixed));
    IS(LP_INVALID_ARGUMENT, lp_tree_scan_prefix(tree, "", 0, NULL, &prefixed));
    uint64_t removed = 9, counted = 0;
    OK(lp_tree_count(tree, "b", 1, "d", 1, &counted));
    CHECK(counted == 4);
    OK(lp_tree_count(tree, NULL, 0, NULL, 0, &counted));
    CHECK(counted == 10);
    IS(LP_INVALID_ARGUMENT, lp_tree_count(tree, NULL, 1, NULL, 0, &counted));
    IS(LP_INVALID_ARGUMENT, lp_tree_count(tree, NULL, 0, NULL, 0, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_count(NULL, NULL, 0, NULL, 0, &counted));
    OK(lp_tree_remove_range(tree, "b", 1, "d", 1, &removed));
    CHECK(removed == 4);
    OK(lp_tree_remove_range(tree, "z", 1, NULL, 0, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_remove_range(tree, NULL, 2, NULL, 0, NULL));
    scan_shows(tree, NULL, NULL, "a=a d=d e=e f=f g=g h=h ");
    lp_tree_free(tree);
}

/* The cursor's key, one letter, or 0 where it is at none. */
static char at(lp_tree_cursor *cursor) {
    lp_bytes key = {NULL, 0}, value = {NULL, 0};
    lp_status status = lp_tree_cursor_record(cursor, &key, &value);
    if (status == LP_NOT_FOUND)
        return 0;
    OK(status);
    CHECK(key.len == 1 && value.len == 1 && *(const char *)key.data == *(const char *)value.data);
    return *(const char *)key.data;
}

static void cursors(void) {
    lp_tree *tree = letters();
    lp_tree_cursor *cursor = NULL;
    OK(lp_tree_cursor_open(tree, NULL, 0, NULL, 0, &cursor));
    CHECK(at(cursor) == 0);
    OK(lp_tree_cursor_next(cursor));
    CHECK(at(cursor) == 'a');
    IS(LP_NOT_FOUND, lp_tree_cursor_prev(cursor));
    IS(LP_NOT_FOUND, lp_tree_cursor_prev(cursor));
    CHECK(at(cursor) == 0);
    OK(lp_tree_cursor_next(cursor));
    CHECK(at(cursor) == 'a');
    OK(lp_tree_cursor_last(cursor));
    CHECK(at(cursor) == 'h');
    IS(LP_NOT_FOUND, lp_tree_cursor_next(cursor));
    IS(LP_NOT_FOUND, lp_tree_cursor_next(cursor));
    OK(lp_tree_cursor_prev(cursor));
    CHECK(at(cursor) == 'h');
    OK(lp_tree_cursor_seek(cursor, "cc", 2));
    CHECK(at(cursor) == 'd');
    OK(lp_tree_cursor_prev(cursor));
    CHECK(at(cursor) == 'c');
    OK(lp_tree_cursor_prev(cursor));
    OK(lp_tree_cursor_next(cursor));
    CHECK(at(cursor) == 'c');
    OK(lp_tree_cursor_seek_back(cursor, "cc", 2));
    CHECK(at(cursor) == 'c');
    OK(lp_tree_cursor_seek_back(cursor, "f", 1));
    CHECK(at(cursor) == 'f');
    IS(LP_NOT_FOUND, lp_tree_cursor_seek(cursor, "x", 1));
    OK(lp_tree_cursor_prev(cursor));
    CHECK(at(cursor) == 'h');
    IS(LP_NOT_FOUND, lp_tree_cursor_seek_back(cursor, "A", 1));
    OK(lp_tree_cursor_next(cursor));
    CHECK(at(cursor) == 'a');
    OK(lp_tree_cursor_record(cursor, NULL, NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_seek(cursor, NULL, 2));
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_seek_back(cursor, NULL, 2));
    lp_tree_cursor_free(cursor);

    /* Within bounds; the tree may be freed before its cursor. */
    OK(lp_tree_cursor_open(tree, "c", 1, "f", 1, &cursor));
    lp_tree_free(tree);
    OK(lp_tree_cursor_first(cursor));
    CHECK(at(cursor) == 'c');
    IS(LP_NOT_FOUND, lp_tree_cursor_prev(cursor));
    OK(lp_tree_cursor_last(cursor));
    CHECK(at(cursor) == 'e');
    OK(lp_tree_cursor_seek(cursor, "a", 1));
    CHECK(at(cursor) == 'c');
    OK(lp_tree_cursor_seek_back(cursor, "z", 1));
    CHECK(at(cursor) == 'e');
    IS(LP_NOT_FOUND, lp_tree_cursor_seek(cursor, "f", 1));
    lp_tree_cursor_free(cursor);

    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_open(NULL, NULL, 0, NULL, 0, &cursor));
    CHECK(cursor == NULL);
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_first(NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_last(NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_next(NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_prev(NULL));
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_seek(NULL, "a", 1));
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_seek_back(NULL, "a", 1));
    IS(LP_INVALID_ARGUMENT, lp_tree_cursor_record(NULL, NULL, NULL));
    lp_tree_cursor_free(NULL);
}

/* A cursor goes on while the tree is written to: keys that stay are seen once each. */
static void cursor_beside_writes(void) {
    lp_tree *tree = tree_with("zstd:1");
    char key[32], value[256];
    for (unsigned number = 0; number < 3000; number += 2)
        OK(lp_tree_insert(tree, key, key_of(number, key), value, value_of(number, value)));
    lp_tree_cursor *cursor = NULL;
    OK(lp_tree_cursor_open(tree, NULL, 0, NULL, 0, &cursor));
    unsigned stayed = 0, written = 1;
    lp_status status;
    while ((status = lp_tree_cursor_next(cursor)) == LP_OK) {
        lp_bytes found_key, found;
        OK(lp_tree_cursor_record(cursor, &found_key, &found));
        /* The key's bytes end without a zero. */
        CHECK(found_key.len == 13);
        memcpy(key, found_key.data, 13);
        key[13] = 0;
        unsigned number = (unsigned)strtoul(key + 5, NULL, 10);
        CHECK(found.len == value_of(number, value) && memcmp(found.data, value, found.len) == 0);
        stayed += number % 2 == 0;
        if (written < 3000) {
            OK(lp_tree_insert(tree, key, key_of(written, key), value, value_of(written, value)));
            written += 2;
        }
    }
    IS(LP_NOT_FOUND, status);
    CHECK(stayed == 1500);
    lp_tree_cursor_free(cursor);
    lp_tree_free(tree);
}

void test_tree_ranges(void) {
    scans();
    cursors();
    cursor_beside_writes();
}

static void figures(lp_tree *tree) {
    lp_tree_stats stats;
    memset(&stats, 0xEE, sizeof stats);
    SAYS(LP_INVALID_ARGUMENT, "sizeof", lp_tree_get_stats(tree, &stats));
    stats.struct_size = 3;
    IS(LP_INVALID_ARGUMENT, lp_tree_get_stats(tree, &stats));
    stats.struct_size = sizeof stats;
    OK(lp_tree_get_stats(tree, &stats));
    CHECK(stats.struct_size == sizeof stats && stats.records == 20000 && stats.puts >= 20000);
    CHECK(stats.bytes_held > 0 && stats.bytes_held < stats.user_bytes && stats.leaves > 1 && stats.depth > 1);
    CHECK(stats.dictionary_id != 0);
    /* A program of an older header has fewer fields: what is behind them is left alone. */
    memset(&stats, 0xEE, sizeof stats);
    stats.struct_size = offsetof(lp_tree_stats, bytes_held);
    OK(lp_tree_get_stats(tree, &stats));
    CHECK(stats.records == 20000 && stats.bytes_held == 0xEEEEEEEEEEEEEEEEu);
    /* A struct of a newer header has more fields: its size field returns how many were filled in. */
    union {
        lp_tree_stats stats;
        char bytes[sizeof(lp_tree_stats) + 64];
    } newer;
    newer.stats.struct_size = sizeof newer;
    OK(lp_tree_get_stats(tree, &newer.stats));
    CHECK(newer.stats.struct_size == sizeof(lp_tree_stats));
    IS(LP_INVALID_ARGUMENT, lp_tree_get_stats(tree, NULL));
}

void test_tree_upkeep(void) {
    char key[32], value[256];
    lp_tree *tree = tree_with("lz4");
    lp_dictionary *dictionary = NULL;
    IS(LP_NOT_FOUND, lp_tree_dictionary(tree, &dictionary));
    CHECK(dictionary == NULL);
    IS(LP_INVALID_ARGUMENT, lp_tree_dictionary(tree, NULL));
    for (unsigned number = 0; number < 20000; number++)
        OK(lp_tree_insert(tree, key, key_of(number, key), value, value_of(number, value)));
    OK(lp_tree_settle(tree));
    OK(lp_tree_compact(tree));
    /* The records are the same: another dictionary may be better, or not. */
    lp_status trained = lp_tree_train(tree);
    CHECK(trained == LP_OK || trained == LP_NOT_FOUND);
    OK(lp_tree_validate(tree));
    figures(tree);
    OK(lp_tree_dictionary(tree, &dictionary));
    lp_tree_free(tree);
    /* Another tree may have it. */
    lp_options *options = options_with(NULL, NULL);
    OK(lp_options_set_dictionary(options, dictionary));
    OK(lp_tree_open(options, &tree));
    lp_options_free(options);
    lp_dictionary_free(dictionary);
    for (unsigned number = 0; number < 100; number++)
        OK(lp_tree_insert(tree, key, key_of(number, key), value, value_of(number, value)));
    OK(lp_tree_compact(tree));
    OK(lp_tree_validate(tree));
    lp_tree_free(tree);
    tree = tree_with("none");
    options = options_with("dictionary", "off");
    OK(lp_options_set(options, "frame_bytes", "1"));
    OK(lp_options_set(options, "leaf_bytes", "16KiB"));
    lp_tree_free(tree);
    OK(lp_tree_open(options, &tree));
    IS(LP_NOT_FOUND, lp_tree_train(tree));
    lp_options_free(options);
    lp_tree_free(tree);
}
