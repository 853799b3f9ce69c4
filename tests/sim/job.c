/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds in other processes: an assertion that fails ends its seed only.
 *
 * A process runs several seeds, one after the other, and is brought back to its first state before each, so that
 * nothing of one seed can touch another: a process for each seed took half of the time. The second run of a seed has a
 * process of its own, with other addresses and other remains in the memory. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/stage.h"

enum {
    STACK_BYTES = 256 * 1024, /* of which remains are made */
};

const char *__asan_default_options(void);
/* A killed process's memory is not given back piece by piece: that is what kill -9 means. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

struct scenario_options sim_setting_options(const struct sim_setting *setting, uint64_t seed)
{
    return (struct scenario_options){.seed = seed,
                                     .nodes = setting->nodes,
                                     .hard = setting->hard,
                                     .deletes = setting->deletes,
                                     .hasty = setting->hasty,
                                     .stage = sim_stage_at(setting->stage)};
}

/* ---- in the child ---- */

static void child_write(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes) {
        ssize_t done = write(fd, at, bytes);
        if (done <= 0) _exit(3);
        at += done;
        bytes -= (size_t)done;
    }
}

static void seed_run(const struct sim_setting *setting, uint64_t seed,
                     struct scenario_result *out_result)
{
    struct scenario_options options = sim_setting_options(setting, seed);
    sim_bug_set(setting->bug);
    alarm(SIM_SECONDS_PER_SEED);
    scenario_run(&options, out_result);
#ifdef LEAT_BUGS
    memcpy(out_result->bugs_met, leat_bugs_met, sizeof leat_bugs_met);
#endif
}

/* SUBTLE: in one state the raft library took a byte of a pointer for a flag: one seed of thousands did not replay, by
 * chance, where the heap began 5 KiB further on. A second run has other addresses, and other remains in its heap and
 * its stack. */
static __attribute__((noinline)) void remains_make(uint64_t seed)
{
    volatile uint8_t stack[STACK_BYTES];
    for (size_t i = 0; i < sizeof stack; i++)
        stack[i] = 0xa5;
    sim_process_elsewhere(seed);
}

/* By value: what sim_process_again() leaves as it is are locals alone. */
static void child_run(struct sim_job job, int pipe)
{
    struct scenario_result result;
    dup2(job.text, 2);
    if (job.second) remains_make(job.seed);
    if (job.end > job.seed + 1 && !sim_process_keep()) _exit(3);
    for (;;) {
        seed_run(&job.setting, job.seed, &result);
        child_write(pipe, &result, sizeof result);
        if (++job.seed == job.end) _exit(0);
        sim_process_again();
        if (ftruncate(job.text, 0) || lseek(job.text, 0, SEEK_SET)) _exit(3);
    }
}

/* ---- beside it ---- */

void sim_job_start(struct sim_job *job, const struct sim_setting *setting, uint64_t seed,
                   uint64_t end, bool second)
{
    int ends[2];
    *job = (struct sim_job){.seed = seed, .end = end, .second = second, .setting = *setting};
    job->text = memfd_create("leat-sim", MFD_CLOEXEC);
    if (pipe2(ends, O_CLOEXEC) != 0 || job->text < 0) {
        perror("leat-sim");
        exit(3);
    }
    fflush(NULL);
    job->pid = fork();
    if (job->pid < 0) {
        perror("leat-sim: fork");
        exit(3);
    }
    if (job->pid == 0) child_run(*job, ends[1]);
    close(ends[1]);
    job->pipe = ends[0];
}

bool sim_jobs_wait(struct sim_job *jobs, unsigned count)
{
    struct pollfd waits[SIM_JOBS_MAX];
    bool any = false;
    for (unsigned i = 0; i < count; i++) {
        waits[i] = (struct pollfd){jobs[i].pid ? jobs[i].pipe : -1, POLLIN, 0};
        any |= jobs[i].pid != 0;
    }
    if (!any) return false;
    bool told = poll(waits, count, -1) > 0;
    for (unsigned i = 0; i < count; i++)
        jobs[i].ready = told && waits[i].revents != 0;
    return true;
}

static void child_wait(const struct sim_job *job, int *out_status)
{
    while (waitpid(job->pid, out_status, 0) < 0)
        continue;
}

/* What the end of a child says of the seed that the child was at. */
static void death_verdict(const struct sim_job *job, char *out, size_t bytes)
{
    int status = 0;
    child_wait(job, &status);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(out, bytes, "A10 stuck: no end within %d s of real time", SIM_SECONDS_PER_SEED);
    else if (WIFSIGNALED(status))
        snprintf(out, bytes, "A11 assert: ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, bytes, "A11 assert: ended with code %d", WEXITSTATUS(status));
}

void sim_job_verdict(struct sim_job *job, char *out, size_t bytes)
{
    char *to = (char *)&job->result;
    size_t have = 0;
    out[0] = '\0';
    memset(&job->result, 0, sizeof job->result);
    while (have < sizeof job->result) {
        ssize_t got = read(job->pipe, to + have, sizeof job->result - have);
        if (got <= 0) break;
        have += (size_t)got;
    }
    if (have < sizeof job->result) {
        death_verdict(job, out, bytes);
        job->pid = 0;
    } else if (job->result.failure[0]) {
        snprintf(out, bytes, "%s", job->result.failure);
    } else if (job->result.acked_batches < job->result.batches_wanted) {
        snprintf(out, bytes, "only %llu batches were acked, %u are wanted",
                 (unsigned long long)job->result.acked_batches,
                 (unsigned)job->result.batches_wanted);
    }
}

void sim_job_text_print(const struct sim_job *job)
{
    static char text[6000];
    struct stat file; /* no seek: the child writes by the same offset */
    off_t bytes = fstat(job->text, &file) == 0 ? file.st_size : 0;
    off_t from = bytes > (off_t)sizeof text ? bytes - (off_t)sizeof text : 0;
    ssize_t got = pread(job->text, text, sizeof text, from);
    if (got > 0) fwrite(text, 1, (size_t)got, stdout);
}

void sim_job_next(struct sim_job *job)
{
    uint64_t next = job->seed + 1;
    if (job->pid && next < job->end) {
        job->seed = next;
        return;
    }
    if (job->pid) child_wait(job, NULL);
    close(job->pipe);
    close(job->text);
    job->pid = 0;
    if (next >= job->end) return;
    struct sim_setting setting = job->setting; /* what is started is cleared first */
    sim_job_start(job, &setting, next, job->end, job->second);
}
