/* A world whose input is a schedule: one simulated broker or three, honest clients, and a stranger who
 * does to their ports what the input says (tests/sim/stranger.c). Properties: honest clients are answered
 * within 10 s of virtual time; no command of a peer that has proved nothing is applied; no coordinator
 * stops; the servers' heap stays within its bound; nothing acknowledged is lost (the simulator's own
 * checkers); no assertion, no sanitizer's report.
 *
 * The input: one byte (bit 0: three nodes; the others: which seed), then the stranger's schedule.
 *
 * Each input runs in a process of its own, as a world leaves what killed servers had in memory. What the
 * child has covered is told to libFuzzer as extra counters. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/sim/stranger.h"

enum {
    SECONDS_MAX = 60,
    RECORDS = 60,
    SEEDS = 32,
    MEMORY_BYTES = 192 * 1024 * 1024,
};

/* libFuzzer's own: one byte for each edge of the program's code. */
extern uint8_t counters_begin[] __asm__("__start___sancov_cntrs")
    __attribute__((weak, visibility("hidden")));
extern uint8_t counters_end[] __asm__("__stop___sancov_cntrs")
    __attribute__((weak, visibility("hidden")));

/* What libFuzzer takes for coverage beside its own: the child's counters go here. */
static uint8_t features[1 << 17] __attribute__((section("__libfuzzer_extra_counters"), used));

static const uint8_t *schedule;
static size_t schedule_bytes;
static uint8_t *covered; /* shared with children */

static void on_built(struct scenario *scenario)
{
    scenario->memory_bytes = MEMORY_BYTES;
    sim_stranger_start(scenario, schedule, schedule_bytes);
}

static void world_run(uint8_t choice)
{
    struct scenario_result result;
    struct scenario_options options = {
        .seed = 1 + (choice >> 1) % SEEDS,
        .calm = true,
        .recovery = true,
        .nodes = choice & 1 ? 3 : 1,
        .records = RECORDS,
        .on_built = on_built,
        .wait_for = sim_stranger_done,
        .tracing = getenv("LEAT_FUZZ_TRACE") != NULL,
    };
    scenario_run(&options, &result);
    if (!result.failure[0]) return;
    fprintf(stderr, "world: %s\n", result.failure);
    abort();
}

static void child_run(uint8_t choice)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGALRM, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)signal(signals[i], SIG_DFL); /* libFuzzer's handlers are the parent's business */
    memset(counters_begin, 0, (size_t)(counters_end - counters_begin));
    alarm(SECONDS_MAX);
    world_run(choice);
    memcpy(covered, counters_begin, (size_t)(counters_end - counters_begin));
    _exit(0);
}

static void counters_take(void)
{
    size_t count = (size_t)(counters_end - counters_begin);
    for (size_t i = 0; i < count; i++)
        if (covered[i]) features[i % sizeof features] = covered[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int status = 0;
    if (size < 2) return 0;
    if (!covered)
        covered = mmap(NULL, (size_t)(counters_end - counters_begin), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    LEAT_ASSERT(covered != MAP_FAILED);
    schedule = data + 1;
    schedule_bytes = size - 1;
    pid_t pid = fork();
    LEAT_ASSERT(pid >= 0);
    if (pid == 0) child_run(data[0]);
    while (waitpid(pid, &status, 0) < 0)
        continue;
    if (status != 0) {
        fprintf(stderr, "world: the run ended with status %#x\n", (unsigned)status);
        abort();
    }
    counters_take();
    return 0;
}
