/* A libqpl with a device that is busy on demand. Its deflate writes stored blocks only. */
#include <stdint.h>
#include <string.h>

enum { HARDWARE = 1, OP_DECOMPRESS = 0 };
enum { OK = 0, MORE_OUTPUT_NEEDED = 2, BUSY = 5, NO_MEMORY = 101, MALFORMED = 200 };

/* The head of qpl_job. */
struct job {
    const uint8_t *next_in;
    uint32_t available_in, total_in;
    uint8_t *next_out;
    uint32_t available_out, total_out;
    int32_t op;
    uint32_t flags;
};

/* Settings: how often a submission, and a check, is refused for every job that succeeds (negative: for ever), and how many
 * jobs for the device can be initialised (negative: any number). */
static long busy_submissions, busy_checks, hardware_jobs = -1;
static long submissions_refused, checks_refused;
/* Counters. */
static long submissions, checks, executions;

void fake_qpl_set(long submissions_busy, long checks_busy, long jobs) {
    busy_submissions = submissions_busy;
    busy_checks = checks_busy;
    hardware_jobs = jobs;
    submissions_refused = checks_refused = submissions = checks = executions = 0;
}

long fake_qpl_submissions(void) { return submissions; }
long fake_qpl_checks(void) { return checks; }
long fake_qpl_executions(void) { return executions; }

static int refused(long allowed, long *count) {
    if (allowed < 0 || *count < allowed) {
        ++*count;
        return 1;
    }
    *count = 0;
    return 0;
}

const char *qpl_get_library_version(void) { return "1.6.0"; }

uint32_t qpl_get_job_size(int32_t path, uint32_t *size) {
    (void)path;
    *size = 4096;
    return OK;
}

uint32_t qpl_init_job(int32_t path, struct job *job) {
    (void)job;
    if (path == HARDWARE && hardware_jobs >= 0 && hardware_jobs-- <= 0) {
        hardware_jobs = 0;
        return NO_MEMORY;
    }
    return OK;
}

uint32_t qpl_fini_job(struct job *job) {
    (void)job;
    return OK;
}

static uint32_t run(struct job *job) {
    const uint8_t *in = job->next_in;
    uint32_t left = job->available_in, written = 0;
    if (job->op != OP_DECOMPRESS) {
        if (left > 65535 || left + 5 > job->available_out) {
            return MORE_OUTPUT_NEEDED;
        }
        uint8_t header[5] = {1, left & 0xff, left >> 8, ~left & 0xff, ~left >> 8 & 0xff};
        memcpy(job->next_out, header, 5);
        memcpy(job->next_out + 5, in, left);
        job->total_out = left + 5;
        return OK;
    }
    for (int last = 0; !last;) {
        if (left < 5 || in[0] > 1) {
            return MALFORMED;
        }
        uint32_t len = in[1] | (uint32_t)in[2] << 8;
        last = in[0];
        if (len > left - 5) {
            return MALFORMED;
        }
        if (len > job->available_out - written) {
            return MORE_OUTPUT_NEEDED;
        }
        memcpy(job->next_out + written, in + 5, len);
        written += len;
        in += 5 + len;
        left -= 5 + len;
    }
    job->total_out = written;
    return OK;
}

uint32_t qpl_submit_job(struct job *job) {
    ++submissions;
    if (refused(busy_submissions, &submissions_refused)) {
        return BUSY;
    }
    return run(job);
}

uint32_t qpl_check_job(struct job *job) {
    (void)job;
    ++checks;
    return refused(busy_checks, &checks_refused) ? BUSY : OK;
}

uint32_t qpl_execute_job(struct job *job) {
    ++executions;
    return run(job);
}
