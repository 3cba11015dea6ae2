/*
 * An ordered map that stays compressed: records, ranges, a cursor, figures.
 *
 *   cc tree.c $(pkg-config --cflags --libs leafpress) -o tree && ./tree
 */
#include <leafpress.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program at what it does not expect. */
static void must(lp_status status) {
    if (status == LP_OK)
        return;
    fprintf(stderr, "%s: %s\n", lp_status_name(status), lp_last_error());
    exit(1);
}

/* A lp_record_fn that prints a record. The bytes have a length and no zero byte at the end. */
static int print(void *context, const void *key, size_t key_len, const void *value, size_t value_len) {
    (void)context;
    printf("  %.*s = %.*s\n", (int)key_len, (const char *)key, (int)value_len, (const char *)value);
    return 0;
}

int main(void) {
    lp_options *options;
    must(lp_options_new(&options));
    must(lp_options_set(options, "codec", "zstd:1"));
    lp_tree *tree;
    must(lp_tree_open(options, &tree));
    lp_options_free(options);

    /* A hundred thousand readings of ten sensors. */
    char key[64], value[160];
    for (int reading = 0; reading < 100000; reading++) {
        int key_len = snprintf(key, sizeof key, "sensor:%d:%08d", reading % 10, reading);
        int value_len = snprintf(value, sizeof value, "{\"celsius\":%d.%d,\"humidity\":%d,\"battery\":\"good\"}",
                                 15 + reading % 7, reading % 10, 40 + reading % 20);
        must(lp_tree_insert(tree, key, (size_t)key_len, value, (size_t)value_len));
    }

    /* One record, copied. */
    size_t len;
    lp_status status = lp_tree_get(tree, "sensor:3:00000013", 17, value, sizeof value, &len);
    if (status == LP_OK)
        printf("one reading: %.*s\n", (int)len, value);
    else if (status == LP_NOT_FOUND)
        printf("there is no such reading\n");
    else
        must(status);

    /* A range of keys, by a callback. */
    puts("the first readings of sensor 3:");
    must(lp_tree_scan(tree, "sensor:3:", 9, "sensor:3:00000040", 17, print, NULL));

    /* A cursor goes either way, while other threads write. */
    lp_tree_cursor *cursor;
    must(lp_tree_cursor_open(tree, NULL, 0, NULL, 0, &cursor));
    puts("the last readings of sensor 3, backwards:");
    int left = 3;
    for (status = lp_tree_cursor_seek_back(cursor, "sensor:4", 8); status == LP_OK && left > 0;
         status = lp_tree_cursor_prev(cursor)) {
        lp_bytes found_key, found;
        must(lp_tree_cursor_record(cursor, &found_key, &found));
        print(NULL, found_key.data, found_key.len, found.data, found.len);
        left--;
    }
    lp_tree_cursor_free(cursor);

    /* Upkeep is done in the background; now it is waited for, so that the figures are those of a tree at rest. */
    must(lp_tree_settle(tree));
    lp_tree_stats stats;
    stats.struct_size = sizeof stats;
    must(lp_tree_get_stats(tree, &stats));
    printf("%llu records of %llu bytes take %llu bytes of memory\n", (unsigned long long)stats.records,
           (unsigned long long)stats.user_bytes, (unsigned long long)stats.bytes_held);
    lp_tree_free(tree);
    return 0;
}
