// A load generator for servers that speak RESP: one thread, many connections, commands from templates, real values.
//
//   load PORT SECONDS CLIENTS PIPELINE SEED READS KEYS FIELDS VALUES READ WRITE
//
// READS of 100 commands are READ, the others WRITE. A template's words are divided by tabs; {k} becomes a number below
// KEYS of twelve digits, {f} one below FIELDS, {v} a value of the file VALUES (each after its length in four bytes,
// little endian). Prints one line of name=value: operations, their rate, latencies of reads and writes in microseconds,
// how many took more than 10 ms, errors, and the share of a core that this program used.
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SLOWEST = 2000000, MAX_WORDS = 64, MAX_PIPELINE = 1024 };

struct template { char *words[MAX_WORDS]; int count; };

struct client {
    int socket;
    char *out;
    size_t out_size, out_length, sent;
    char in[65536];
    size_t in_length;
    // Replies, or parts of one, that are still to come of the command that is read now; bytes of a string to pass over.
    long parts, skip;
    int answered, waiting;
    char is_read[MAX_PIPELINE];
    double began;
};

static uint32_t *latencies[2];
static uint64_t counts[2], slow, errors, state;
static char *values, **value_at;
static uint32_t *value_length;
static size_t value_count;
static long keys, fields;
static int pipeline, reads;

static void die(const char *what) {
    fprintf(stderr, "error: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static uint64_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 2685821657736338717u >> 16;
}

static void read_values(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    fseek(file, 0, SEEK_END);
    size_t size = ftell(file), at = 0;
    rewind(file);
    values = malloc(size + 1);
    if (fread(values, 1, size, file) != size) die(path);
    fclose(file);
    value_at = malloc((size / 4 + 1) * sizeof *value_at);
    value_length = malloc((size / 4 + 1) * sizeof *value_length);
    while (at + 4 <= size) {
        memcpy(&value_length[value_count], values + at, 4);
        value_at[value_count] = values + at + 4;
        at += 4 + value_length[value_count++];
    }
    if (!value_count || at != size) die("no values");
}

static void split(struct template *t, char *text) {
    for (char *word = strtok(text, "\t"); word; word = strtok(NULL, "\t")) {
        if (t->count == MAX_WORDS) die("too many words");
        t->words[t->count++] = word;
    }
}

static void put(struct client *c, const char *bytes, size_t length) {
    if (c->out_length + length > c->out_size) {
        c->out_size = 2 * (c->out_length + length);
        if (!(c->out = realloc(c->out, c->out_size))) die("memory");
    }
    memcpy(c->out + c->out_length, bytes, length);
    c->out_length += length;
}

static void put_bulk(struct client *c, const char *bytes, size_t length) {
    char head[32];
    put(c, head, sprintf(head, "$%zu\r\n", length));
    put(c, bytes, length);
    put(c, "\r\n", 2);
}

static void put_command(struct client *c, const struct template *t) {
    char head[32], word[4096];
    long key = draw() % keys, field = draw() % fields;
    put(c, head, sprintf(head, "*%d\r\n", t->count));
    for (int at = 0; at < t->count; at++) {
        const char *text = t->words[at];
        if (!strcmp(text, "{v}")) {
            size_t chosen = draw() % value_count;
            put_bulk(c, value_at[chosen], value_length[chosen]);
            continue;
        }
        size_t length = 0;
        while (*text && length < sizeof word - 32) {
            if (!strncmp(text, "{k}", 3)) length += sprintf(word + length, "%012ld", key), text += 3;
            else if (!strncmp(text, "{f}", 3)) length += sprintf(word + length, "%012ld", field), text += 3;
            else word[length++] = *text++;
        }
        put_bulk(c, word, length);
    }
}

static void send_some(struct client *c) {
    while (c->sent < c->out_length) {
        ssize_t done = send(c->socket, c->out + c->sent, c->out_length - c->sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EAGAIN) return;
        if (done <= 0) die("send");
        c->sent += done;
    }
}

static void next_batch(struct client *c, struct template *templates) {
    c->out_length = c->sent = 0;
    c->answered = 0, c->waiting = pipeline, c->parts = 1;
    for (int at = 0; at < pipeline; at++) {
        c->is_read[at] = (int)(draw() % 100) < reads;
        put_command(c, &templates[!c->is_read[at]]);
    }
    c->began = now();
    send_some(c);
}

static void count_reply(struct client *c, double at) {
    uint64_t took = (at - c->began) * 1e6;
    int write = !c->is_read[c->answered++];
    latencies[write][took < SLOWEST ? took : SLOWEST - 1]++;
    counts[write]++;
    slow += took > 10000;
    c->parts = 1;
}

// Passes over what has come of the replies.
static void take_replies(struct client *c) {
    size_t at = 0;
    double came = now();
    while (at < c->in_length && c->answered < c->waiting) {
        if (c->skip) {
            size_t part = c->in_length - at < (size_t)c->skip ? c->in_length - at : (size_t)c->skip;
            at += part, c->skip -= part;
            if (c->skip) break;
        } else {
            char *line = c->in + at, *end = memchr(line, '\n', c->in_length - at);
            if (!end) break;
            long number = line[0] == '$' || line[0] == '*' ? atol(line + 1) : 0;
            errors += line[0] == '-';
            at = end + 1 - c->in;
            if (line[0] == '$' && number >= 0) {
                c->skip = number + 2;
                continue;
            }
            if (line[0] == '*' && number > 0) c->parts += number;
        }
        if (--c->parts == 0) count_reply(c, came);
    }
    memmove(c->in, c->in + at, c->in_length - at);
    c->in_length -= at;
}

static struct client *open_client(int port) {
    struct client *c = calloc(1, sizeof *c);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    c->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->socket, (struct sockaddr *)&address, sizeof address) < 0) die("connect");
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->socket, F_SETFL, O_NONBLOCK);
    return c;
}

static long quantile(int which, double share) {
    uint64_t wanted = counts[which] * share, seen = 0;
    for (long at = 0; at < SLOWEST; at++)
        if ((seen += latencies[which][at]) > wanted) return at;
    return 0;
}

static long slowest(int which) {
    for (long at = SLOWEST - 1; at > 0; at--)
        if (latencies[which][at]) return at;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 12) {
        fprintf(stderr, "usage: load PORT SECONDS CLIENTS PIPELINE SEED READS KEYS FIELDS VALUES READ WRITE\n");
        return 2;
    }
    int port = atoi(argv[1]), clients = atoi(argv[3]);
    double seconds = atof(argv[2]);
    pipeline = atoi(argv[4]), state = atoll(argv[5]) * 2 + 88172645463325253u;
    reads = atoi(argv[6]), keys = atol(argv[7]), fields = atol(argv[8]);
    if (pipeline < 1 || pipeline > MAX_PIPELINE || keys < 1 || fields < 1 || clients < 1) return 2;
    read_values(argv[9]);
    struct template templates[2] = {{{0}, 0}, {{0}, 0}};
    split(&templates[0], argv[10]);
    split(&templates[1], argv[11]);
    for (int which = 0; which < 2; which++)
        if (!(latencies[which] = calloc(SLOWEST, sizeof **latencies))) die("memory");

    int poll = epoll_create1(0);
    double began = now(), end = began + seconds;
    for (int at = 0; at < clients; at++) {
        struct client *c = open_client(port);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, c->socket, &event) < 0) die("epoll");
        next_batch(c, templates);
    }
    struct epoll_event events[256];
    double last = began;
    while ((last = now()) < end) {
        int ready = epoll_wait(poll, events, 256, 100);
        for (int at = 0; at < ready; at++) {
            struct client *c = events[at].data.ptr;
            send_some(c);
            for (;;) {
                ssize_t got = recv(c->socket, c->in + c->in_length, sizeof c->in - c->in_length, 0);
                if (got < 0 && errno == EAGAIN) break;
                if (got <= 0) die("the server closed the connection");
                c->in_length += got;
                take_replies(c);
                if (c->answered == c->waiting) next_batch(c, templates);
            }
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double took = last - began;
    double busy = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("operations=%lu rate=%.0f", counts[0] + counts[1], (counts[0] + counts[1]) / took);
    for (int which = 0; which < 2; which++)
        printf(" %s_p50=%ld %s_p99=%ld %s_p999=%ld %s_max=%ld", which ? "write" : "read", quantile(which, 0.5), which ? "write" : "read",
               quantile(which, 0.99), which ? "write" : "read", quantile(which, 0.999), which ? "write" : "read", slowest(which));
    printf(" slow=%lu errors=%lu busy=%.3f\n", slow, errors, busy / took);
    return 0;
}
