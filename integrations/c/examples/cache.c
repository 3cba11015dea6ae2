/*
 * A cache before a slow database: memory and a disk tier, a loader, records that expire, a warm start.
 *
 *   cc cache.c $(pkg-config --cflags --libs leafpress) -o cache && ./cache [FILE]
 */
#include <leafpress.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(lp_status status) {
    if (status == LP_OK)
        return;
    fprintf(stderr, "%s: %s\n", lp_status_name(status), lp_last_error());
    exit(1);
}

/* 8 MiB of memory, and 256 MiB of a file for what leaves it. */
static lp_cache *open_cache(const char *path) {
    lp_options *options;
    lp_cache *cache;
    must(lp_options_new(&options));
    must(lp_options_set(options, "memory_bytes", "8MiB"));
    must(lp_options_set(options, "disk_path", path));
    must(lp_options_set(options, "disk_bytes", "256MiB"));
    must(lp_cache_open(options, &cache));
    lp_options_free(options);
    return cache;
}

/* The database: it has articles 0 to 199999, and counts its queries. */
static int load_article(void *context, const void *key, size_t key_len, lp_load *load) {
    long *queries = context;
    char id_text[32] = {0}, article[256];
    ++*queries;
    if (key_len <= 8 || key_len - 8 >= sizeof id_text)
        return LP_NOT_FOUND;
    memcpy(id_text, (const char *)key + 8, key_len - 8);
    long id = strtol(id_text, NULL, 10);
    if (id >= 200000)
        return LP_NOT_FOUND;
    int len = snprintf(article, sizeof article, "{\"id\":%ld,\"name\":\"article %ld\"", id, id);
    /* Half of it is digits that do not shrink much. */
    static const char *const fields[] = {"ean", "supplier", "stock", "price", "weight", "rating"};
    unsigned long long digits = (unsigned long long)id;
    for (size_t field = 0; field < sizeof fields / sizeof *fields; field++) {
        digits = (digits ^ (digits >> 31)) * 0x9E3779B97F4A7C15u ^ 0x5851F42Du;
        len += snprintf(article + len, sizeof article - (size_t)len, ",\"%s\":%llu", fields[field], digits >> 20);
    }
    article[len++] = '}';
    /* The bytes are copied. */
    return lp_load_set(load, article, (size_t)len);
}

static int print(void *context, const void *value, size_t value_len) {
    printf("%s%.*s\n", (const char *)context, (int)value_len, (const char *)value);
    return 0;
}

/* Gets many articles; returns how many of them were read from the database. */
static long request_all(lp_cache *cache) {
    char key[32];
    long queries = 0;
    for (int id = 0; id < 200000; id++) {
        int len = snprintf(key, sizeof key, "article:%d", id);
        must(lp_cache_get_or_load(cache, key, (size_t)len, load_article, &queries, NULL, NULL));
    }
    return queries;
}

int main(int count, char **arguments) {
    const char *path = count > 1 ? arguments[1] : "example.cache";
    lp_cache *cache = open_cache(path);

    /* The first queries the database, the second is a hit. Of several threads that miss a key at a time, one loads it. */
    long queries = 0;
    must(lp_cache_get_or_load(cache, "article:42", 10, load_article, &queries, print, "loaded: "));
    must(lp_cache_get_or_load(cache, "article:42", 10, load_article, &queries, print, "cached: "));
    if (lp_cache_get_or_load(cache, "article:999999", 14, load_article, &queries, NULL, NULL) == LP_NOT_FOUND)
        printf("no such article; the database was queried %ld times\n", queries);

    /* A record that lives for a minute. */
    must(lp_cache_insert_ttl(cache, "session:7", 9, "open", 4, 60 * 1000));

    printf("filling: the database was queried %ld times\n", request_all(cache));
    must(lp_cache_settle(cache));
    char text[4096];
    size_t len;
    must(lp_cache_describe(cache, text, sizeof text, &len));
    puts(text);

    /* Close, and the next start has what this one had; lp_cache_free() would drop it. */
    must(lp_cache_close(cache));
    cache = open_cache(path);
    printf("opened again: the database was queried %ld times\n", request_all(cache));
    must(lp_cache_close(cache));
    if (count == 1)
        remove(path);
    return 0;
}
