/* Codecs, dictionaries and sealed blocks. */
#include "check.h"

enum { RAW = 3000 };

static void text(char *raw) {
    for (size_t at = 0; at < RAW; at++)
        raw[at] = "the same words again, or nearly so; "[(at + at / 100) % 36];
}

/* Bytes from least on, which deflate's fixed codes spend nine bits on if that is 144; from 0 on no codec makes them
   shorter. */
static void noise(char *raw, unsigned least) {
    uint32_t state = 1;
    for (size_t at = 0; at < RAW; at++) {
        state = state * 1664525u + 1013904223u;
        raw[at] = (char)(least + (state >> 24) % (256 - least));
    }
}

static lp_codec *open_codec(const char *name) {
    lp_codec *codec = NULL;
    OK(lp_codec_open(name, &codec));
    return codec;
}

static void blocks(lp_codec *codec, const lp_dictionary *dictionary, const char *raw, size_t raw_len) {
    size_t needed = 0, len = 0, bound = lp_compress_bound(raw_len);
    char *block = (char *)malloc(bound), *back = (char *)malloc(raw_len + 1);
    CHECK(block != NULL && back != NULL);
    OK(lp_compress(codec, dictionary, raw, raw_len, NULL, 0, &needed));
    CHECK(needed <= bound);
    OK(lp_compress(codec, dictionary, raw, raw_len, block, bound, &len));
    CHECK(len == needed);
    OK(lp_compress(codec, dictionary, raw, raw_len, block, len, &needed));
    if (len > 0)
        IS(LP_BUFFER_TOO_SMALL, lp_compress(codec, dictionary, raw, raw_len, block, len - 1, &needed));
    CHECK(needed == len);
    back[raw_len] = '.';
    OK(lp_decompress(codec, dictionary, block, len, back, raw_len));
    CHECK(memcmp(back, raw, raw_len) == 0 && back[raw_len] == '.');
    IS(LP_CORRUPT, lp_decompress(codec, dictionary, block, len, back, raw_len + 1));
    if (raw_len > 0)
        IS(LP_CORRUPT, lp_decompress(codec, dictionary, block, len, back, raw_len - 1));
    free(block);
    free(back);
}

static int open_each(void *context, const char *name, const char *because) {
    int *runs = (int *)context;
    lp_codec *codec = NULL;
    lp_status status = lp_codec_open(name, &codec);
    if (because != NULL) {
        SAYS(LP_UNAVAILABLE, because, status);
        CHECK(codec == NULL);
        return 0;
    }
    OK(status);
    char raw[RAW];
    const size_t lengths[] = {0, 1, 13, 500, RAW};
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        text(raw);
        blocks(codec, NULL, raw, lengths[at]);
        noise(raw, 144);
        blocks(codec, NULL, raw, lengths[at]);
        noise(raw, 0);
        blocks(codec, NULL, raw, lengths[at]);
    }
    lp_codec_free(codec);
    *runs += 1;
    return 0;
}

static int stop(void *context, const char *name, const char *because) {
    (void)context, (void)name, (void)because;
    return 1;
}

/* A dictionary trained of records, and some of these. */
static lp_dictionary *train(const char *codec) {
    static char records[400][256];
    lp_bytes samples[400];
    for (unsigned at = 0; at < 400; at++) {
        samples[at].data = records[at];
        samples[at].len = value_of(at, records[at]);
    }
    lp_dictionary *dictionary = NULL;
    SAYS(LP_FAILED, "samples", lp_dictionary_train(codec, samples, 3, 4096, &dictionary));
    CHECK(dictionary == NULL);
    SAYS(LP_FAILED, "256", lp_dictionary_train(codec, samples, 400, 10, &dictionary));
    SAYS(LP_FAILED, "no dictionary", lp_dictionary_train("deflate:1", samples, 400, 4096, &dictionary));
    IS(LP_INVALID_ARGUMENT, lp_dictionary_train("lz9", samples, 400, 4096, &dictionary));
    IS(LP_INVALID_ARGUMENT, lp_dictionary_train(NULL, samples, 400, 4096, &dictionary));
    IS(LP_INVALID_ARGUMENT, lp_dictionary_train(codec, NULL, 400, 4096, &dictionary));
    IS(LP_INVALID_ARGUMENT, lp_dictionary_train(codec, samples, 400, 4096, NULL));
    OK(lp_dictionary_train(codec, samples, 400, 4096, &dictionary));
    return dictionary;
}

void test_codec(void) {
    int runs = 0;
    OK(lp_codec_list(open_each, &runs));
    CHECK(runs >= 6);
    IS(LP_STOPPED, lp_codec_list(stop, NULL));
    IS(LP_INVALID_ARGUMENT, lp_codec_list(NULL, NULL));
    lp_codec *codec = NULL;
    SAYS(LP_INVALID_ARGUMENT, "lz4:hc=2..12", lp_codec_open("gzip", &codec));
    IS(LP_UNAVAILABLE, lp_codec_open("auto", &codec));
    IS(LP_INVALID_ARGUMENT, lp_codec_open(NULL, &codec));
    IS(LP_INVALID_ARGUMENT, lp_codec_open("lz4", NULL));
    const char *names[] = {"lz4", "zstd:3"};
    for (size_t at = 0; at < 2; at++) {
        codec = open_codec(names[at]);
        lp_dictionary *dictionary = train(names[at]);
        char raw[256];
        size_t raw_len = value_of(4711, raw), with = 0, without = 0, len;
        blocks(codec, dictionary, raw, raw_len);
        OK(lp_compress(codec, dictionary, raw, raw_len, NULL, 0, &with));
        OK(lp_compress(codec, NULL, raw, raw_len, NULL, 0, &without));
        CHECK(with < without);
        IS(LP_INVALID_ARGUMENT, lp_compress(NULL, NULL, raw, raw_len, NULL, 0, &len));
        IS(LP_INVALID_ARGUMENT, lp_compress(codec, NULL, NULL, raw_len, NULL, 0, &len));
        IS(LP_INVALID_ARGUMENT, lp_compress(codec, NULL, raw, raw_len, NULL, 0, NULL));
        IS(LP_INVALID_ARGUMENT, lp_decompress(NULL, NULL, raw, raw_len, raw, raw_len));
        IS(LP_INVALID_ARGUMENT, lp_decompress(codec, NULL, raw, raw_len, NULL, 1));
        IS(LP_INVALID_ARGUMENT, lp_decompress(codec, NULL, NULL, 1, raw, raw_len));
        lp_dictionary_free(dictionary);
        lp_codec_free(codec);
    }
    lp_codec_free(NULL);
    lp_dictionary_free(NULL);
    lp_dictionary *dictionary = NULL;
    IS(LP_INVALID_ARGUMENT, lp_dictionary_new(1, NULL, 5, &dictionary));
    IS(LP_INVALID_ARGUMENT, lp_dictionary_new(1, "", 0, NULL));
    IS(LP_INVALID_ARGUMENT, lp_dictionary_content(NULL, NULL, NULL));
    /* Bytes that begin as a dictionary of Zstandard's, and are none. */
    OK(lp_dictionary_new(1, "\x37\xA4\x30\xEC\x01\x02\x03\x04garbage", 15, &dictionary));
    OK(lp_dictionary_content(dictionary, NULL, NULL));
    codec = open_codec("zstd:1");
    size_t len;
    IS(LP_FAILED, lp_compress(codec, dictionary, "abcabcabcabcabcabc", 18, NULL, 0, &len));
    lp_codec_free(codec);
    lp_dictionary_free(dictionary);
}

static void labels(const void *sealed, size_t len) {
    lp_sealed_label label;
    label.struct_size = sizeof label;
    OK(lp_sealed_read_label(sealed, len, &label));
    CHECK(label.raw_len == RAW && strcmp(label.codec, "zstd") == 0 && label.has_dictionary && label.dictionary_id == 5);
    IS(LP_CORRUPT, lp_sealed_read_label("nonsense", 8, &label));
    IS(LP_INVALID_ARGUMENT, lp_sealed_read_label(NULL, 8, &label));
    IS(LP_INVALID_ARGUMENT, lp_sealed_read_label(sealed, len, NULL));
    label.struct_size = 0;
    IS(LP_INVALID_ARGUMENT, lp_sealed_read_label(sealed, len, &label));
}

void test_sealed(void) {
    char raw[RAW], sealed[RAW + 64], back[RAW];
    text(raw);
    size_t len = 0, needed = 0;
    lp_dictionary *five = NULL, *six = NULL;
    OK(lp_dictionary_new(5, raw, 100, &five));
    OK(lp_dictionary_new(6, raw, 50, &six));
    lp_codec *codec = open_codec("zstd:3");
    CHECK(lp_seal_bound(RAW) <= sizeof sealed);
    OK(lp_seal(codec, five, raw, RAW, NULL, 0, &needed));
    OK(lp_seal(codec, five, raw, RAW, sealed, sizeof sealed, &len));
    CHECK(len == needed && len < RAW / 2);
    IS(LP_BUFFER_TOO_SMALL, lp_seal(codec, five, raw, RAW, sealed, len - 1, &needed));
    OK(lp_seal(codec, five, raw, RAW, sealed, len, &len));
    labels(sealed, len);
    const lp_dictionary *both[] = {six, NULL, five};
    size_t raw_len = 0;
    OK(lp_unseal(sealed, len, both, 3, NULL, 0, &raw_len));
    CHECK(raw_len == RAW);
    OK(lp_unseal(sealed, len, both, 3, back, RAW, &raw_len));
    CHECK(raw_len == RAW && memcmp(raw, back, RAW) == 0);
    IS(LP_BUFFER_TOO_SMALL, lp_unseal(sealed, len, both, 3, back, RAW - 1, &raw_len));
    CHECK(raw_len == RAW);
    SAYS(LP_UNKNOWN_DICTIONARY, "0x00000005", lp_unseal(sealed, len, both, 1, back, RAW, &raw_len));
    IS(LP_UNKNOWN_DICTIONARY, lp_unseal(sealed, len, NULL, 0, back, RAW, &raw_len));
    IS(LP_INVALID_ARGUMENT, lp_unseal(sealed, len, NULL, 1, back, RAW, &raw_len));
    IS(LP_INVALID_ARGUMENT, lp_unseal(sealed, len, both, 3, back, RAW, NULL));
    IS(LP_INVALID_ARGUMENT, lp_unseal(NULL, len, both, 3, back, RAW, &raw_len));
    IS(LP_INVALID_ARGUMENT, lp_seal(NULL, five, raw, RAW, NULL, 0, &needed));
    for (size_t at = 0; at < len; at++) {
        sealed[at] = (char)(sealed[at] ^ 4);
        CHECK(lp_unseal(sealed, len, both, 3, back, RAW, &raw_len) != LP_OK);
        sealed[at] = (char)(sealed[at] ^ 4);
        IS(LP_CORRUPT, lp_unseal(sealed, at, both, 3, back, RAW, &raw_len));
    }
    /* What does not shrink is stored; any codec's block is read without that codec. */
    noise(raw, 0);
    OK(lp_seal(codec, NULL, raw, RAW, sealed, sizeof sealed, &len));
    CHECK(len > RAW && len <= lp_seal_bound(RAW));
    lp_codec_free(codec);
    OK(lp_unseal(sealed, len, NULL, 0, back, RAW, &raw_len));
    CHECK(memcmp(raw, back, RAW) == 0);
    lp_dictionary_free(five);
    lp_dictionary_free(six);
}
