/*
 * Compressing small messages with a dictionary, into blocks that say themselves what they are.
 *
 *   cc codec.c $(pkg-config --cflags --libs leafpress) -o codec && ./codec
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

static int list(void *context, const char *name, const char *unavailable_because) {
    (void)context;
    printf("  %s%s%s\n", name, unavailable_because ? ": " : "", unavailable_because ? unavailable_because : "");
    return 0;
}

static size_t message(int number, char *text, size_t room) {
    return (size_t)snprintf(text, room, "{\"event\":\"click\",\"user\":%d,\"page\":\"/shop/item/%d\",\"ms\":%d}", number * 17,
                            number % 97, number % 1000);
}

int main(void) {
    puts("codecs here:");
    must(lp_codec_list(list, NULL));

    /* What messages have in common, learned from a thousand of them. */
    static char texts[1000][128];
    static lp_bytes samples[1000];
    for (int number = 0; number < 1000; number++) {
        samples[number].data = texts[number];
        samples[number].len = message(number, texts[number], sizeof texts[number]);
    }
    lp_dictionary *dictionary;
    must(lp_dictionary_train("zstd:3", samples, 1000, 4096, &dictionary));

    lp_codec *codec;
    must(lp_codec_open("zstd:3", &codec));
    char raw[128], sealed[256], back[128];
    size_t raw_len = message(123456, raw, sizeof raw), len;
    must(lp_seal(codec, NULL, raw, raw_len, NULL, 0, &len));
    printf("%zu bytes; sealed %zu", raw_len, len);
    must(lp_seal(codec, dictionary, raw, raw_len, sealed, sizeof sealed, &len));
    printf("; with the dictionary %zu\n", len);

    /* A reader needs no codec, only the dictionary, which the block names by its id. */
    const lp_dictionary *known[] = {dictionary};
    size_t back_len;
    must(lp_unseal(sealed, len, known, 1, back, sizeof back, &back_len));
    printf("back: %.*s\n", (int)back_len, back);

    /* Damage is found. */
    sealed[len - 1] ^= 1;
    if (lp_unseal(sealed, len, known, 1, back, sizeof back, &back_len) == LP_CORRUPT)
        printf("damaged: %s\n", lp_last_error());

    /* A block without header, for programs that store the lengths themselves. */
    must(lp_compress(codec, dictionary, raw, raw_len, sealed, sizeof sealed, &len));
    must(lp_decompress(codec, dictionary, sealed, len, back, raw_len));
    printf("a bare block is %zu bytes\n", len);
    lp_codec_free(codec);
    lp_dictionary_free(dictionary);
    return 0;
}
