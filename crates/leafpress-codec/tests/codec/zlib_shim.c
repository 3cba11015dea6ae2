/* A library to be preloaded over zlib, like Intel's zlib-accel: it resolves zlib when it is loaded, counts the calls
 * and passes them on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef int (*flushing)(void *stream, int flush);

static flushing real_deflate, real_inflate;
static long deflates, inflates;

__attribute__((constructor)) static void load(void) {
    real_deflate = (flushing)dlsym(RTLD_NEXT, "deflate");
    real_inflate = (flushing)dlsym(RTLD_NEXT, "inflate");
}

int deflate(void *stream, int flush) {
    __atomic_add_fetch(&deflates, 1, __ATOMIC_RELAXED);
    return real_deflate(stream, flush);
}

int inflate(void *stream, int flush) {
    __atomic_add_fetch(&inflates, 1, __ATOMIC_RELAXED);
    return real_inflate(stream, flush);
}

long leafpress_shim_calls(int of_inflate) { return of_inflate ? inflates : deflates; }
