/* A library to be preloaded over zlib: FAULTY_ZLIB=wrong changes a byte in the middle of every third stream, =fails reports an
 * error for every second one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The first members of z_stream. */
struct stream {
    const unsigned char *next_in;
    unsigned avail_in;
    unsigned long total_in;
    unsigned char *next_out;
    unsigned avail_out;
};

int deflate(struct stream *stream, int flush) {
    static int (*real)(struct stream *, int);
    static int calls;
    const char *fault = getenv("FAULTY_ZLIB");
    unsigned char *begin = stream->next_out;
    int call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (!real) {
        real = (int (*)(struct stream *, int))dlsym(RTLD_NEXT, "deflate");
    }
    if (!strcmp(fault, "fails") && call % 2 == 0) {
        return -4;
    }
    int status = real(stream, flush);
    if (!strcmp(fault, "wrong") && call % 3 == 0 && status == 1) {
        begin[(stream->next_out - begin) / 2] ^= 0x40;
    }
    return status;
}
