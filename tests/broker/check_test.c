/* SPDX-License-Identifier: Apache-2.0 */
/* What is asserted of a core's logs after each turn, by check.c alone: each rule is broken once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "tests/broken.h"
#include "tests/broker/alone.h"

void leat_log_check(const struct leat_log *log, bool queued)
{
    assert_ptr_equal(log, &alone);
    said("check the log%s", queued ? ", which is queued" : "");
}
void leat_groups_check(const struct leat_groups *groups)
{
    assert_ptr_equal(groups, &alone.stream);
    said("check its consumer groups");
}
void leat_primary_check(const struct leat_primary *primary)
{
    assert_ptr_equal(primary, &alone.cores);
    said("check its backups");
}
void leat_backup_check(const struct leat_backup *backup)
{
    assert_ptr_equal(backup, &alone.node);
    said("check its replicas");
}
void leat_primary_log_check(const struct leat_primary_log *rep)
{
    assert_ptr_equal(rep, &alone.node);
    said("check its copies");
}

static struct leat_stream other; /* where the stream of the log was, say */

static void is_of_another_core(struct leat_partition *partition)
{
    partition->core = &alone.cores[1];
}
static void outlives_its_stream(struct leat_partition *partition)
{
    partition->stream = &other;
}
static void is_given_up(struct leat_partition *partition)
{
    partition->give_up = (void *)&other;
}
static void moves(struct leat_partition *partition)
{
    partition->moving = (void *)&other;
}
static void accepts_a_loss(struct leat_partition *partition)
{
    partition->recover = (void *)&other;
}
static void counts_on_a_node_that_is_down(struct leat_partition *partition)
{
    partition->backfill_node_down = true;
}
static void has_met_a_node_that_is_down(struct leat_partition *partition)
{
    partition->backfill_pass_node_down = true;
}
static void misses_what_a_node_that_is_down_has(struct leat_partition *partition)
{
    partition->backfill = LEAT_BACKFILL_UNDER_WAY;
    partition->backfill_node_down = partition->backfill_pass_node_down = true;
}
static void is_as_it_is(struct leat_partition *partition)
{
    (void)partition;
}

static const char moving[] =
    "(partition->moving != NULL) == (partition->state == LEAT_PARTITION_DRAINS)";
static const char asking[] =
    "partition->recover != NULL || partition->give_up != NULL || partition->state != "
    "LEAT_PARTITION_ASKS_LOSS";
static const char asked[] =
    "partition->recover == NULL || partition->state == LEAT_PARTITION_ASKS_LOSS || "
    "partition->state == LEAT_PARTITION_LOSS_STOPS";

static const char missing[] =
    "partition->backfill != LEAT_BACKFILL_NONE || "
    "(!partition->backfill_node_down && !partition->backfill_pass_node_down)";

static void log_is_checked_after_each_turn(void **state)
{
    (void)state;
    static const struct {
        void (*broken)(struct leat_partition *partition);
        const char *rule; /* NULL: none is broken */
        enum leat_partition_state state;
    } cases[] = {
        {is_of_another_core, "partition->core == core", LEAT_PARTITION_GOES},
        {outlives_its_stream,
         "leat_partition_goes(partition) || partition->stream == leat_stream_find(core, "
         "partition->ref.stream)",
         LEAT_PARTITION_SERVES},
        {outlives_its_stream, NULL, LEAT_PARTITION_GOES},
        {is_given_up, "partition->give_up == NULL || leat_partition_goes(partition)",
         LEAT_PARTITION_SERVES},
        {is_given_up, NULL, LEAT_PARTITION_GOES},
        {is_given_up, NULL, LEAT_PARTITION_ASKS_LOSS},
        {moves, moving, LEAT_PARTITION_SERVES},
        {moves, NULL, LEAT_PARTITION_DRAINS},
        {moves, moving, LEAT_PARTITION_DRAINED},
        {is_as_it_is, moving, LEAT_PARTITION_DRAINS},
        {is_as_it_is, NULL, LEAT_PARTITION_DRAINED},
        {is_as_it_is, asking, LEAT_PARTITION_ASKS_LOSS},
        {is_as_it_is, NULL, LEAT_PARTITION_LOSS_STOPS},
        {accepts_a_loss, NULL, LEAT_PARTITION_ASKS_LOSS},
        {accepts_a_loss, NULL, LEAT_PARTITION_LOSS_STOPS},
        {accepts_a_loss, asked, LEAT_PARTITION_SERVES},
        {accepts_a_loss, asked, LEAT_PARTITION_GOES},
        {counts_on_a_node_that_is_down, missing, LEAT_PARTITION_SERVES},
        {has_met_a_node_that_is_down, missing, LEAT_PARTITION_SERVES},
        {misses_what_a_node_that_is_down_has, NULL, LEAT_PARTITION_SERVES},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        alone_begin();
        struct leat_core *core = &alone.cores[0];
        struct leat_partition logs[2]; /* the second one is broken */
        leat_list_init(&core->data->care_logs);
        for (unsigned q = 0; q < 2; q++) {
            logs[q] = (struct leat_partition){
                .ref = {ALONE_STREAM, q, 0}, .core = core, .stream = &alone.stream};
            leat_list_init(&logs[q].care);
            leat_list_push_back(&core->data->care_logs, &logs[q].care);
        }
        assert_broken(NULL, leat_core_check(core));
        logs[1].state = cases[i].state;
        cases[i].broken(&logs[1]);
        assert_broken(cases[i].rule, leat_core_check(core));
        alone_end();
    }
}

/* Goal: a log says itself what is true of it, and hears whether the end of a turn is to come. */
static void what_lies_below_is_checked(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++) {
        alone_begin();
        struct leat_core *core = &alone.cores[0];
        struct leat_list queue;
        struct leat_replicate replicate = {.primary = i >= 4 ? (void *)&alone.cores : NULL,
                                           .backup = i == 5 ? (void *)&alone.node : NULL};
        core->data->replicate = i > 2 ? &replicate : NULL;
        struct leat_partition partition = {.ref = {ALONE_STREAM, 0, 0},
                                           .core = core,
                                           .stream = &alone.stream,
                                           .log = i != 0 ? (void *)&alone : NULL,
                                           .groups = i == 6 ? (void *)&alone.stream : NULL,
                                           .copies = i == 1 ? (void *)&alone.node : NULL};
        leat_list_init(&core->data->care_logs);
        leat_list_init(&partition.care);
        leat_list_init(&partition.dirty);
        leat_list_init(&queue);
        leat_list_push_back(&core->data->care_logs, &partition.care);
        if (i == 2) leat_list_push_back(&queue, &partition.dirty);
        assert_broken(NULL, leat_core_check(core));
        static const char *const expected[] = {
            "",
            "check its copies\ncheck the log\n",
            "check the log, which is queued\n",
            "check the log\n",
            "check its backups\ncheck the log\n",
            "check its backups\ncheck its replicas\ncheck the log\n",
            "check its backups\ncheck its consumer groups\ncheck the log\n"};
        assert_said(expected[i]);
        core->data->replicate = NULL;
        alone_end();
    }
}

/* Goal: a partition, a node and a fetch take the steps of the diagrams in the README, and no others. */
static void steps_are_checked(void **state)
{
    (void)state;
    static struct leat_partition partition;
    static const char *const may[] = {
        [LEAT_PARTITION_SERVES] = ".A.D.G",     [LEAT_PARTITION_ASKS_LOSS] = "S.L...",
        [LEAT_PARTITION_LOSS_STOPS] = "S.....", [LEAT_PARTITION_DRAINS] = "....DG",
        [LEAT_PARTITION_DRAINED] = "S....G",    [LEAT_PARTITION_GOES] = "......"};
    static const char *const backfill_may[] = {[LEAT_BACKFILL_NONE] = "N.D",
                                               [LEAT_BACKFILL_UNDER_WAY] = "N.D",
                                               [LEAT_BACKFILL_DUE] = "NUD"};
    alone_begin();
    partition.core = &alone.cores[0];
    assert_steps(partition.state, may, "follow[partition->state] & 1u << to",
                 leat_partition_enter(&partition, step_to));
    assert_steps(partition.backfill, backfill_may, "follow[partition->backfill] & 1u << to",
                 leat_backfill_enter(&partition, step_to));
    static const char *const life_may[] = {
        [LEAT_LIFE_MADE] = ".SR...G",    [LEAT_LIFE_STARTED] = "...C..G",
        [LEAT_LIFE_READY] = "...C..G",   [LEAT_LIFE_COMES_UP] = "....U.G",
        [LEAT_LIFE_UP] = ".....S.",      [LEAT_LIFE_STOPS] = ".......",
        [LEAT_LIFE_GIVES_UP] = "......."};
    assert_steps(alone.node.life, life_may, "follow[node->life] & 1u << to",
                 leat_node_enter(&alone.node, step_to));
    alone_end();
    static struct leat_fetch fetch;
    static const char *const fetch_may[] = {
        [LEAT_FETCH_RUNNING] = "RWUCYS",    [LEAT_FETCH_WAITING] = "..U...",
        [LEAT_FETCH_UNWATCHING] = "R.U.Y.", [LEAT_FETCH_CONFIRMING] = "..U...",
        [LEAT_FETCH_READY] = "....YS",      [LEAT_FETCH_SENDING] = "......"};
    assert_steps(fetch.state, fetch_may, "follow[fetch->state] & 1u << to",
                 leat_fetch_enter(&fetch, step_to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_is_checked_after_each_turn),
        cmocka_unit_test(what_lies_below_is_checked),
        cmocka_unit_test(steps_are_checked),
    };
    return cmocka_run_group_tests_name("broker check", tests, NULL, NULL);
}
