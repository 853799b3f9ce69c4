/* SPDX-License-Identifier: Apache-2.0 */
/* What is asserted of a core's logs after each turn, by check.c alone: each rule is broken once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "tests/broken.h"
#include "tests/broker/alone.h"

void leat_log_check(const struct leat_log *log, bool queued)
{
    assert_ptr_equal(log, &alone);
    said("check the log%s", queued ? ", which is queued" : "");
}
void leat_primary_check(const struct leat_primary *primary)
{
    assert_ptr_equal(primary, &alone.cores);
    said("check its backups");
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
static void is_drained(struct leat_partition *partition)
{
    partition->drained = true;
}
static void moves_on_when_drained(struct leat_partition *partition)
{
    moves(partition);
    is_drained(partition);
    partition->going = true;
}

static void log_is_checked_after_each_turn(void **state)
{
    (void)state;
    static const struct {
        void (*broken)(struct leat_partition *partition);
        const char *rule; /* NULL: none is broken */
        bool going;
    } cases[] = {
        {is_of_another_core, "partition->core == core", true},
        {outlives_its_stream,
         "partition->going || partition->stream == leat_stream_find(core, partition->ref.stream)",
         false},
        {outlives_its_stream, NULL, true},
        {is_given_up, "partition->give_up == NULL || partition->going", false},
        {is_given_up, NULL, true},
        {moves, "partition->moving == NULL || partition->going", false},
        {moves, NULL, true},
        {is_drained, "!partition->drained || partition->going", false},
        {is_drained, NULL, true},
        {moves_on_when_drained, "partition->moving == NULL || !partition->drained", true},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        alone_begin();
        struct leat_core *core = &alone.cores[0];
        struct leat_partition logs[2]; /* the second one is broken */
        leat_list_init(&core->care_logs);
        for (unsigned q = 0; q < 2; q++) {
            logs[q] = (struct leat_partition){
                .ref = {ALONE_STREAM, q, 0}, .core = core, .stream = &alone.stream};
            leat_list_init(&logs[q].care);
            leat_list_push_back(&core->care_logs, &logs[q].care);
        }
        assert_broken(NULL, leat_core_check(core));
        logs[1].going = cases[i].going;
        cases[i].broken(&logs[1]);
        assert_broken(cases[i].rule, leat_core_check(core));
        alone_end();
    }
}

/* Goal: a log says itself what is true of it, and hears whether the end of a turn is to come. */
static void what_lies_below_is_checked(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        alone_begin();
        struct leat_core *core = &alone.cores[0];
        struct leat_list queue;
        struct leat_replicate replicate = {.primary = i == 4 ? (void *)&alone.cores : NULL};
        core->replicate = i > 2 ? &replicate : NULL;
        struct leat_partition partition = {.ref = {ALONE_STREAM, 0, 0},
                                           .core = core,
                                           .stream = &alone.stream,
                                           .log = i != 0 ? (void *)&alone : NULL,
                                           .copies = i == 1 ? (void *)&alone.node : NULL};
        leat_list_init(&core->care_logs);
        leat_list_init(&partition.care);
        leat_list_init(&partition.dirty);
        leat_list_init(&queue);
        leat_list_push_back(&core->care_logs, &partition.care);
        if (i == 2) leat_list_push_back(&queue, &partition.dirty);
        assert_broken(NULL, leat_core_check(core));
        static const char *const expected[] = {
            "", "check its copies\ncheck the log\n", "check the log, which is queued\n",
            "check the log\n", "check its backups\ncheck the log\n"};
        assert_said(expected[i]);
        core->replicate = NULL;
        alone_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_is_checked_after_each_turn),
        cmocka_unit_test(what_lies_below_is_checked),
    };
    return cmocka_run_group_tests_name("broker check", tests, NULL, NULL);
}
