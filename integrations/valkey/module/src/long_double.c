/* Sums in the C type `long double`, which Rust lacks: what the servers add floats of hashes with. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 5 * 1024 };
enum outcome { NOT_A_NUMBER = -1, NOT_FINITE = -2, NO_ROOM = -3 };

/* Whether all of `text` is a number, and not "nan". */
static int parse(const char *text, size_t len, long double *number) {
    char copy[LONGEST];
    if (len == 0 || len >= sizeof copy) return 0;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (copy[0] == ' ' || (copy[0] >= '\t' && copy[0] <= '\r')) return 0;
    char *end;
    errno = 0;
    *number = strtold(copy, &end);
    if ((size_t)(end - copy) != len || isnan(*number)) return 0;
    return !(errno == ERANGE && (*number == HUGE_VALL || *number == -HUGE_VALL || fabsl(*number) == 0));
}

/* 0 where `text` is a finite number, else an outcome. */
int leafpress_float_check(const char *text, size_t len) {
    long double number;
    if (!parse(text, len, &number)) return NOT_A_NUMBER;
    return isfinite(number) ? 0 : NOT_FINITE;
}

/* Writes the sum of two numbers as people write it: no exponent, no zeros at the end. Returns its length, or an
   outcome. */
int leafpress_float_add(const char *a, size_t a_len, const char *b, size_t b_len, char *out, size_t room) {
    long double x, y;
    if (!parse(a, a_len, &x) || !parse(b, b_len, &y)) return NOT_A_NUMBER;
    long double sum = x + y;
    if (!isfinite(sum)) return NOT_FINITE;
    int len = snprintf(out, room, "%.17Lf", sum);
    if (len < 0 || (size_t)len >= room) return NO_ROOM;
    if (memchr(out, '.', (size_t)len)) {
        while (out[len - 1] == '0') len--;
        if (out[len - 1] == '.') len--;
    }
    if (len == 2 && out[0] == '-' && out[1] == '0') {
        out[0] = '0';
        len = 1;
    }
    return len;
}
