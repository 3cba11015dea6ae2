/* Threads, forks, and a system without memory. */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 500 };

static int get_number(void *context, const void *value, size_t value_len) {
    CHECK(value_len == sizeof(uint64_t));
    memcpy(context, value, value_len);
    return 0;
}

/* Adds one to a counter, as often as it takes for nobody to have been in between. */
static void add_one(lp_tree *tree) {
    for (;;) {
        uint64_t old = 0, sum;
        lp_status read = lp_tree_read(tree, "counter", 7, get_number, &old);
        CHECK(read == LP_OK || read == LP_NOT_FOUND);
        sum = old + 1;
        lp_bytes expected = {&old, sizeof old}, value = {&sum, sizeof sum};
        lp_status swapped =
            lp_tree_compare_and_swap(tree, "counter", 7, read == LP_OK ? &expected : NULL, &value);
        if (swapped == LP_OK)
            return;
        IS(LP_MISMATCH, swapped);
    }
}

typedef struct {
    lp_tree *tree;
    lp_cache *cache;
    unsigned thread;
} Work;

static void *work(void *context) {
    Work *mine = (Work *)context;
    char key[32], value[256], found[256];
    size_t len;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned number = mine->thread * ROUNDS + round;
        OK(lp_tree_insert(mine->tree, key, key_of(number, key), value, value_of(number, value)));
        OK(lp_tree_get(mine->tree, key, strlen(key), found, sizeof found, &len));
        CHECK(len == strlen(value) && memcmp(found, value, len) == 0);
        OK(lp_cache_insert(mine->cache, key, strlen(key), value, strlen(value)));
        lp_status status = lp_cache_get(mine->cache, key, strlen(key), found, sizeof found, &len);
        CHECK(status == LP_OK || status == LP_NOT_FOUND);
        add_one(mine->tree);
        /* Each thread has its own message. */
        lp_codec *codec = NULL;
        sprintf(key, "no-%u", mine->thread);
        SAYS(LP_INVALID_ARGUMENT, key, lp_codec_open(key, &codec));
    }
    return NULL;
}

void test_threads(void) {
    lp_tree *tree = tree_with("lz4");
    lp_cache *cache = NULL;
    OK(lp_cache_open(NULL, &cache));
    pthread_t threads[THREADS];
    Work works[THREADS];
    for (unsigned thread = 0; thread < THREADS; thread++) {
        works[thread].tree = tree;
        works[thread].cache = cache;
        works[thread].thread = thread;
        CHECK(pthread_create(&threads[thread], NULL, work, &works[thread]) == 0);
    }
    for (unsigned thread = 0; thread < THREADS; thread++)
        CHECK(pthread_join(threads[thread], NULL) == 0);
    uint64_t sum = 0, records = 0;
    OK(lp_tree_read(tree, "counter", 7, get_number, &sum));
    CHECK(sum == THREADS * ROUNDS);
    OK(lp_tree_len(tree, &records));
    CHECK(records == THREADS * ROUNDS + 1);
    OK(lp_tree_validate(tree));
    lp_tree_free(tree);
    lp_cache_free(cache);
}

/* Has a child do the work, and waits for it to end well. */
static void in_child(void (*child_work)(void *), void *context) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* Hangs end as failures do. */
        alarm(120);
        child_work(context);
        /* Memory of the parent that the child frees remains, which must not be reported as a leak. */
        if (getenv("LEAFPRESS_NO_LIMITS") != NULL)
            execlp("true", "true", (char *)NULL);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

typedef struct {
    lp_options *options;
    lp_tree *tree;
    lp_tree_cursor *cursor;
    lp_cache *cache;
    lp_codec *codec;
    lp_dictionary *dictionary;
} Handles;

static void child_is_refused(void *context) {
    Handles *of_parent = (Handles *)context;
    char buffer[16];
    size_t len;
    SAYS(LP_FORKED, "forked", lp_tree_insert(of_parent->tree, "a", 1, "b", 1));
    IS(LP_FORKED, lp_tree_get(of_parent->tree, "a", 1, buffer, 16, &len));
    IS(LP_FORKED, lp_tree_cursor_next(of_parent->cursor));
    IS(LP_FORKED, lp_cache_get(of_parent->cache, "a", 1, buffer, 16, &len));
    IS(LP_FORKED, lp_cache_settle(of_parent->cache));
    IS(LP_FORKED, lp_compress(of_parent->codec, NULL, "a", 1, buffer, 16, &len));
    IS(LP_FORKED, lp_dictionary_content(of_parent->dictionary, NULL, NULL));
    IS(LP_FORKED, lp_options_set(of_parent->options, "codec", "lz4"));
    IS(LP_FORKED, lp_cache_close(of_parent->cache));
    lp_tree_cursor_free(of_parent->cursor);
    lp_tree_free(of_parent->tree);
    lp_cache_free(of_parent->cache);
    lp_codec_free(of_parent->codec);
    lp_dictionary_free(of_parent->dictionary);
    lp_options_free(of_parent->options);
    /* Its own are as good as any. */
    lp_tree *tree = tree_with("lz4");
    OK(lp_tree_insert(tree, "a", 1, "b", 1));
    OK(lp_tree_contains(tree, "a", 1));
    lp_tree_free(tree);
    lp_cache *cache = NULL;
    OK(lp_cache_open(NULL, &cache));
    OK(lp_cache_insert(cache, "a", 1, "b", 1));
    OK(lp_cache_close(cache));
}

void test_fork(void) {
    Handles handles;
    handles.options = options_with("codec", "zstd:1");
    OK(lp_tree_open(handles.options, &handles.tree));
    OK(lp_cache_open(handles.options, &handles.cache));
    OK(lp_codec_open("lz4", &handles.codec));
    OK(lp_dictionary_new(1, "words", 5, &handles.dictionary));
    OK(lp_tree_insert(handles.tree, "a", 1, "b", 1));
    OK(lp_tree_cursor_open(handles.tree, NULL, 0, NULL, 0, &handles.cursor));
    in_child(child_is_refused, &handles);
    /* The parent goes on. */
    OK(lp_tree_contains(handles.tree, "a", 1));
    OK(lp_tree_cursor_next(handles.cursor));
    lp_tree_cursor_free(handles.cursor);
    lp_tree_free(handles.tree);
    OK(lp_cache_close(handles.cache));
    lp_codec_free(handles.codec);
    lp_dictionary_free(handles.dictionary);
    lp_options_free(handles.options);
}

static void child_lacks_memory(void *context) {
    (void)context;
    const size_t bytes = LP_MAX_VALUE_BYTES;
    char *value = (char *)calloc(bytes, 1);
    lp_tree *tree = tree_with("none");
    CHECK(value != NULL);
    OK(lp_tree_insert(tree, "small", 5, "1", 1));
    /* What the process has, and little more. */
    FILE *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    CHECK(statm != NULL && fscanf(statm, "%lu", &pages) == 1);
    fclose(statm);
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (8 << 20);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    SAYS(LP_OUT_OF_MEMORY, "memory", lp_tree_insert(tree, "large", 5, value, bytes));
    IS(LP_TOO_LONG, lp_tree_insert(tree, "larger", 6, value, bytes + 1));
    OK(lp_tree_contains(tree, "small", 5));
    IS(LP_NOT_FOUND, lp_tree_contains(tree, "large", 5));
    lp_tree_free(tree);
    free(value);
}

void test_memory(void) {
    if (getenv("LEAFPRESS_NO_LIMITS") != NULL) {
        printf("skipped: a process without memory cannot be distinguished from the tool's own need\n");
        return;
    }
    in_child(child_lacks_memory, NULL);
}
