/* What the test programs have in common. They are C11 and C++17 alike. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leafpress.h>

/* Ends the program where something is not as it should be. */
#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: not so: %s; last error: %s\n", __FILE__, __LINE__,       \
                    #condition, lp_last_error());                                            \
            abort();                                                                         \
        }                                                                                    \
    } while (0)

/* The call returns this status. */
#define IS(expected, call)                                                                   \
    do {                                                                                     \
        lp_status is_status = (call);                                                        \
        if (is_status != (expected)) {                                                       \
            fprintf(stderr, "%s:%d: %s returned %s, not %s: %s\n", __FILE__, __LINE__, #call, \
                    lp_status_name((int)is_status), lp_status_name((int)(expected)),          \
                    lp_last_error());                                                        \
            abort();                                                                         \
        }                                                                                    \
    } while (0)

#define OK(call) IS(LP_OK, call)

/* The call fails so, and its message has this in it. */
#define SAYS(expected, text, call)                                                           \
    do {                                                                                     \
        IS(expected, call);                                                                  \
        CHECK(strstr(lp_last_error(), text) != NULL);                                        \
    } while (0)

/* Where callbacks put what they are shown. */
typedef struct {
    char text[4096];
    size_t len;
    int calls;
    /* The callback returns this at its call number stop_at, counted from 1. */
    int stop_at;
} Shown;

static inline int add(Shown *shown, const void *bytes, size_t len) {
    CHECK(shown->len + len < sizeof shown->text);
    if (len > 0)
        memcpy(shown->text + shown->len, bytes, len);
    shown->len += len;
    shown->text[shown->len] = 0;
    return 0;
}

static inline int show_value(void *context, const void *value, size_t value_len) {
    Shown *shown = (Shown *)context;
    shown->calls++;
    add(shown, value, value_len);
    return shown->calls == shown->stop_at;
}

static inline int show_record(void *context, const void *key, size_t key_len, const void *value,
                              size_t value_len) {
    Shown *shown = (Shown *)context;
    shown->calls++;
    add(shown, key, key_len);
    add(shown, "=", 1);
    add(shown, value, value_len);
    add(shown, " ", 1);
    return shown->calls == shown->stop_at;
}

static inline int show_found(void *context, size_t index, const void *value, size_t value_len) {
    Shown *shown = (Shown *)context;
    CHECK((int)index == shown->calls);
    shown->calls++;
    if (value == NULL)
        add(shown, "-", 1);
    else
        add(shown, value, value_len);
    add(shown, " ", 1);
    return shown->calls == shown->stop_at;
}

/* Options with one of them set, or none. */
static inline lp_options *options_with(const char *name, const char *value) {
    lp_options *options = NULL;
    OK(lp_options_new(&options));
    if (name != NULL)
        OK(lp_options_set(options, name, value));
    return options;
}

static inline lp_tree *tree_with(const char *codec) {
    lp_options *options = options_with("codec", codec);
    lp_tree *tree = NULL;
    OK(lp_tree_open(options, &tree));
    lp_options_free(options);
    return tree;
}

/* A record's key and value by its number; the value is some hundred bytes of text. */
static inline size_t key_of(unsigned number, char *key) {
    return (size_t)sprintf(key, "user:%08u", number);
}

static inline size_t value_of(unsigned number, char *value) {
    return (size_t)sprintf(value, "{\"id\":%u,\"name\":\"user %u\",\"mail\":\"user%u@example.org\",\"visits\":%u}",
                           number, number, number, number * 7919u % 1000u);
}

/* The groups of tests. */
#ifdef __cplusplus
extern "C" {
#endif
void test_status(void);
void test_options(void);
void test_tree(void);
void test_tree_ranges(void);
void test_tree_upkeep(void);
void test_cache(void);
void test_cache_disk(void);
void test_cache_overwrite(void);
void test_cache_load(void);
void test_codec(void);
void test_sealed(void);
void test_threads(void);
void test_fork(void);
void test_memory(void);
#ifdef __cplusplus
}
#endif

#endif
