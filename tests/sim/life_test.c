/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a log as a table, and the filter of a trace: both must say what the checkers know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/scenario.h"
#include "tests/sim/truth.h"

enum { NODES = 3, SEED = 1 };

/* What a run's child leaves for the test. */
struct run {
    struct scenario_result result;
    uint64_t rows, acked_rows, decided_rows, owners, closed, deaths;
    uint64_t last_us, acked,
        decided_below;              /* decided_below: ends that are not what was acked before */
    bool backwards;                 /* a row is earlier than the one before */
    uint64_t checked_end, true_end; /* what was acked to clients; the owner's own, at the end */
    bool served, loss_accepted;
};

static struct run *run; /* shared with the child */
static struct scenario *scenario_of_run;

static void on_row(void *arg, const struct sim_life_row *row)
{
    (void)arg;
    run->rows++;
    run->backwards |= row->at_us < run->last_us;
    run->last_us = row->at_us;
    run->owners += row->kind == SIM_LIFE_COMMITTED && strstr(row->event, "goes from") != NULL;
    run->closed += row->kind == SIM_LIFE_COPY && strstr(row->event, ": closed") != NULL;
    run->deaths += row->kind == SIM_LIFE_NODE && strncmp(row->event, "dies", 4) == 0;
    if (row->kind == SIM_LIFE_ACKED) {
        run->acked_rows++;
        run->acked = row->offset;
    }
    if (row->kind == SIM_LIFE_DECIDED) {
        run->decided_rows++;
        run->decided_below += row->offset < run->acked;
    }
}

/* Asked once all producers have been answered. */
static bool holds(struct scenario *scenario)
{
    scenario_of_run = scenario;
    return true;
}

static void child(const struct sim_life *life)
{
    const struct scenario_options options = {
        .seed = SEED, .nodes = NODES, .life = life, .wait_for = holds};
    scenario_run(&options, &run->result);
    if (!life) return;
    struct truth_log truth;
    struct leat_log_ref ref = life->log;
    ref.stream = scenario_of_run->streams[ref.stream].id;
    run->served = truth_find(scenario_of_run, ref, &truth) && truth.served;
    run->true_end = truth.end;
    run->checked_end = check_acked_end(scenario_of_run->check, life->log);
    run->loss_accepted = check_loss_accepted(scenario_of_run->check);
}

/* Each in a process of its own: a seed leaves static variables and memory behind. */
static void run_in_child(const struct sim_life *life)
{
    int status = 1;
    memset(run, 0, sizeof *run);
    pid_t pid = fork();
    if (pid == 0) {
        child(life);
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(run->result.failure, "");
}

/* Goal: the table's last acked offset is the log's, and the checkers'; no decided end is below what
 * the table has acked before. Method: one seed of three nodes in which the log goes from node to node. */
static void life_ends_where_the_checkers_say(void **state)
{
    (void)state;
    const struct sim_life life = {.log = {1, 0, 0}, .on_row = on_row};
    run_in_child(&life);
    assert_true(run->served);
    assert_false(run->loss_accepted);
    assert_false(run->backwards);
    assert_true(run->checked_end > 0);
    assert_int_equal(run->acked, run->true_end);
    assert_true(run->acked >= run->checked_end);
    assert_int_equal(run->decided_below, 0);
    /* The seed is of use: the log was recovered, rolled, and lost nodes. */
    assert_true(run->owners > 0 && run->deaths > 0 && run->closed > 0 && run->decided_rows > 1);
}

/* Goal: to look changes nothing. */
static void seed_goes_as_it_would_without(void **state)
{
    (void)state;
    const struct sim_life life = {.log = {1, 0, 0}, .on_row = on_row};
    run_in_child(NULL);
    uint64_t hash = run->result.trace_hash, events = run->result.events;
    run_in_child(&life);
    assert_true(run->rows > 0);
    assert_int_equal(run->result.trace_hash, hash);
    assert_int_equal(run->result.events, events);
}

static struct sim_trace_about about(const char *kind, const char *text)
{
    struct sim_trace_about out;
    sim_trace_about(kind, text, &out);
    return out;
}

static bool log_is(struct sim_trace_about it, uint32_t stream, uint32_t streamlet, uint32_t log)
{
    return it.has_log && leat_log_ref_equal(it.log, (struct leat_log_ref){stream, streamlet, log});
}

/* Goal: logs are found by the simulator's numbers, whichever way a line names them. */
static void line_names_its_log(void **state)
{
    (void)state;
    sim_trace_stream_is(2, 7);
    assert_true(log_is(about("copies", "committed: 2/1/0 epoch 5, opened, stamp 5/1"), 2, 1, 0));
    assert_true(log_is(about("server", "INFO 7/1/0 is served here under epoch 5"), 2, 1, 0));
    assert_true(log_is(about("closed", "a bit of segment 3 of log id 7/0/1 flips"), 2, 0, 1));
    assert_true(
        log_is(about("pull", "AGAIN: stream stream-2 streamlet 1 log 0 at offset 9"), 2, 1, 0));
    assert_true(
        log_is(about("server", "WARN recovery 5: stream 7 streamlet 1 log 0 waits"), 2, 1, 0));
    assert_false(about("server", "INFO 9/0/0 is served here").has_log); /* an internal stream's */
    assert_false(about("kafka_pull", "group, stage 3: 25").has_log);
    assert_false(about("faults", "10/0/0/1").has_log);
    assert_int_equal(about("closed", "a bit of segment 3 of log id 7/0/1 flips").segment, 3);
    assert_false(about("server", "segments are many").has_segment);
}

static bool is_shown(const char *kind, const char *actor, const char *text)
{
    struct sim_trace_about it = about(kind, text);
    return sim_trace_is_shown(kind, actor, text, &it);
}

/* Goal: a line is shown if it agrees with all that is asked for. */
static void filter_shows_what_agrees(void **state)
{
    (void)state;
    assert_true(is_shown("faults", "", "disk full"));
    sim_trace_filter_set(&(struct sim_trace_filter){.node = "node1"});
    assert_true(is_shown("faults", "node1.2/0", "disk full"));
    assert_true(is_shown("faults", "", "node2 and node1: cut"));
    assert_false(is_shown("faults", "node12.1/0", "disk full"));
    sim_trace_filter_set(&(struct sim_trace_filter){.kind = "traps"});
    assert_true(is_shown("traps_fill", "", "trap 1"));
    assert_true(is_shown("traps", "", "trap 1"));
    assert_false(is_shown("trap", "", "trap 1"));
    struct sim_trace_filter log = {.about = {.has_log = true, .log = {2, 1, 0}}};
    sim_trace_filter_set(&log);
    assert_true(is_shown("copies", "", "committed: 2/1/0 epoch 5"));
    assert_false(is_shown("copies", "", "committed: 2/1/1 epoch 5"));
    assert_false(is_shown("faults", "", "disk full"));
    log.about.has_segment = true;
    log.about.segment = 4;
    assert_true(is_shown("life", "", "2/1/0 at node1: segment 4 is closed"));
    assert_false(is_shown("life", "", "2/1/0 at node1: segment 5 is closed"));
    assert_false(is_shown("copies", "", "committed: 2/1/0 epoch 5"));
    sim_trace_filter_set(NULL);
    struct leat_log_ref ref;
    assert_true(sim_trace_log_read("3/0/2", &ref));
    assert_false(sim_trace_log_read("3/0", &ref));
    assert_false(sim_trace_log_read("3/0/2x", &ref));
}

int main(void)
{
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life_ends_where_the_checkers_say),
        cmocka_unit_test(seed_goes_as_it_would_without),
        cmocka_unit_test(line_names_its_log),
        cmocka_unit_test(filter_shows_what_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
