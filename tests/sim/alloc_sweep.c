/* SPDX-License-Identifier: Apache-2.0 */
/* The allocation sweep: every allocation of the server fails once, each in a run of its own.
 *
 * A fork at the allocation is the run in which it fails; the parent goes on with one that does not.
 * The server may refuse, or not start, or end itself where a committed entry has to be applied
 * (an assertion on `committed_is_applied`): then it is started again, as its operator would. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/sim/scenario.h"

enum {
    RECORDS = 60,
    EXIT_FAILED = 1,
    EXIT_SIGNAL = 2,
    EXIT_ENDED_ITSELF = 10, /* passed, after a fail-stop */
};

static struct {
    struct alloc_sweep_options options;
    struct scenario *scenario;
    uint64_t calls, at; /* allocations so far; which one fails here */
    uint64_t runs, failed, ended_themselves;
    unsigned running;
    int words; /* where the child's assertions speak */
    bool child, ended_itself;
} alloc;

static void reap(unsigned leave)
{
    while (alloc.running > leave) {
        int status;
        if (wait(&status) < 0) continue;
        alloc.running--;
        alloc.runs++;
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_ENDED_ITSELF)
            alloc.ended_themselves++;
        else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            alloc.failed++;
    }
}

/* Whose code runs now? NULL: a client's, or the world's. */
static struct sim_process *server_running(void)
{
    const struct sim_world *world = alloc.scenario->world;
    struct sim_process *process = world->running ? world->running->process : world->entered;
    return process && process->owner == &alloc.scenario->servers[0] ? process : NULL;
}

static _Noreturn void child_ended_by(int signal_number)
{
    static char line[1200], said[900];
    ssize_t got = pread(alloc.words, said, sizeof said - 1, 0);
    int bytes = snprintf(line, sizeof line,
                         "tools/sim --allocations --seed %" PRIu64 " --op %" PRIu64
                         ": ended by signal %d: %s\n",
                         alloc.options.seed, alloc.at, signal_number, got > 0 ? said : "");
    if (write(1, line, (size_t)bytes) != bytes) _exit(4);
    _exit(EXIT_SIGNAL);
}

/* An assertion of the server on what is committed ends the server, not the run. */
static void on_abort(int signal_number)
{
    static char said[900];
    struct sim_process *process = server_running();
    ssize_t got = pread(alloc.words, said, sizeof said - 1, 0);
    if (!process || alloc.ended_itself || got <= 0 || !strstr(said, "committed_is_applied"))
        child_ended_by(signal_number);
    alloc.ended_itself = true;
    sim_process_die(process, SIM_DEATH_KILL);
}

static void child_begin(void)
{
    alloc.child = true;
    alloc.at = alloc.calls;
    alloc.words = memfd_create("leat-sim", MFD_CLOEXEC);
    if (alloc.words < 0 || dup2(alloc.words, 2) < 0) _exit(3);
    /* The handler leaves by longjmp: without SA_NODEFER the signal would stay blocked. */
    struct sigaction aborts = {.sa_handler = on_abort, .sa_flags = SA_NODEFER};
    sigaction(SIGABRT, &aborts, NULL);
    signal(SIGALRM, child_ended_by);
    signal(SIGSEGV, child_ended_by);
    alarm(alloc.options.seconds_per_run);
}

static bool allocation_fails(void *arg)
{
    (void)arg;
    if (alloc.child || !server_running()) return false;
    alloc.calls++;
    if (alloc.options.only ? alloc.calls != alloc.options.only
                           : alloc.calls % alloc.options.step != 0)
        return false;
    reap(alloc.options.jobs - 1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("leat-sim: fork");
        _exit(3);
    }
    alloc.running += pid != 0;
    if (pid == 0) child_begin();
    return pid == 0;
}

static void on_built(struct scenario *scenario)
{
    alloc.scenario = scenario;
    leat_mem_ask(allocation_fails, NULL);
}

int alloc_sweep_run(const struct alloc_sweep_options *options)
{
    struct scenario_options run = {.seed = options->seed,
                                   .calm = true,
                                   .records = RECORDS,
                                   .tracing = options->tracing,
                                   .on_built = on_built};
    struct scenario_result result;
    alloc.options = *options;
    scenario_run(&run, &result);
    leat_mem_ask(NULL, NULL);
    if (alloc.child) {
        if (result.failure[0])
            printf("tools/sim --allocations --seed %" PRIu64 " --op %" PRIu64 ": %s\n",
                   options->seed, alloc.at, result.failure);
        fflush(stdout);
        _exit(result.failure[0] ? EXIT_FAILED : alloc.ended_itself ? EXIT_ENDED_ITSELF : 0);
    }
    reap(0);
    printf("allocations of seed %" PRIu64 ": %" PRIu64 ", %" PRIu64 " failed one by one, %" PRIu64
           " ended the server by assertion, %" PRIu64 " runs failed%s%s\n",
           options->seed, alloc.calls, alloc.runs, alloc.ended_themselves, alloc.failed,
           result.failure[0] ? "; without a failure: " : "", result.failure);
    return alloc.failed || result.failure[0] || !alloc.runs ? 1 : 0;
}
