/* Measures the cost of a call through the C interface, by reads of a tree; boundary.rs does the same in Rust. */
#include <leafpress.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECORDS = 200000, READS = 2000000, ROUNDS = 7 };

static void must(lp_status status) {
    if (status != LP_OK) {
        fprintf(stderr, "%s: %s\n", lp_status_name(status), lp_last_error());
        exit(1);
    }
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int add_len(void *context, const void *value, size_t value_len) {
    (void)value;
    *(size_t *)context += value_len;
    return 0;
}

static int ascending(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

/* The median of the rounds, in ns per read. */
static double measure(lp_tree *tree, int kind) {
    double rounds[ROUNDS];
    char key[32], value[256];
    size_t sum = 0, len;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned state = 1;
        memcpy(key, "user:00000000", 13);
        double begin = now_ns();
        for (int read = 0; read < READS; read++) {
            state = state * 1664525u + 1013904223u;
            unsigned number = (state >> 8) % RECORDS;
            for (int digit = 12; digit >= 7; digit--, number /= 10)
                key[digit] = (char)('0' + number % 10);
            switch (kind) {
            case 0:
                must(lp_tree_contains(tree, key, 13));
                break;
            case 1:
                must(lp_tree_get(tree, key, 13, value, sizeof value, &len));
                sum += len;
                break;
            default:
                must(lp_tree_read(tree, key, 13, add_len, &sum));
            }
        }
        rounds[round] = (now_ns() - begin) / READS;
    }
    if (kind > 0 && sum == 0)
        exit(1);
    qsort(rounds, ROUNDS, sizeof *rounds, ascending);
    return rounds[ROUNDS / 2];
}

int main(int count, char **codecs) {
    const char *const kinds[] = {"contains", "get", "read"};
    for (int at = 1; at < count; at++) {
        lp_options *options;
        lp_tree *tree;
        char key[32], value[256];
        must(lp_options_new(&options));
        must(lp_options_set(options, "codec", codecs[at]));
        must(lp_tree_open(options, &tree));
        lp_options_free(options);
        for (unsigned number = 0; number < RECORDS; number++) {
            int key_len = sprintf(key, "user:%08u", number);
            int len = sprintf(value, "{\"id\":%u,\"name\":\"user %u\",\"mail\":\"user%u@example.org\",\"visits\":%u}", number,
                              number, number, number * 7919u % 1000u);
            must(lp_tree_insert(tree, key, (size_t)key_len, value, (size_t)len));
        }
        must(lp_tree_settle(tree));
        for (int kind = 0; kind < 3; kind++)
            printf("C    %-6s %-8s %6.1f ns\n", codecs[at], kinds[kind], measure(tree, kind));
        lp_tree_free(tree);
    }
    return 0;
}
