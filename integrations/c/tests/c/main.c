/* Runs all tests, or those named. */
#include "check.h"

typedef struct {
    const char *name;
    void (*test)(void);
} Test;

int main(int count, char **names) {
    const Test tests[] = {
        {"status", test_status},         {"options", test_options},
        {"tree", test_tree},             {"tree_ranges", test_tree_ranges},
        {"tree_upkeep", test_tree_upkeep}, {"cache", test_cache},
        {"cache_disk", test_cache_disk}, {"cache_load", test_cache_load},
        {"codec", test_codec},           {"sealed", test_sealed},
        {"threads", test_threads},       {"fork", test_fork},
        {"memory", test_memory},         {"cache_overwrite", test_cache_overwrite},
    };
    size_t ran = 0;
    for (size_t at = 0; at < sizeof tests / sizeof *tests; at++) {
        int wanted = count < 2;
        for (int name = 1; name < count; name++)
            wanted |= strcmp(names[name], tests[at].name) == 0;
        if (!wanted)
            continue;
        tests[at].test();
        ran++;
    }
    printf("%zu groups of tests passed\n", ran);
    return ran > 0 ? 0 : 1;
}
