/* SPDX-License-Identifier: Apache-2.0 */
/* What front ends see of streams and logs, by front_logs.c alone: the tables are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/data/append.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "broker/front_logs.h"
#include "tests/broker/alone.h"

enum { STREAMS = 9, BUCKETS = 4, HIDDEN = 2, INTERNAL = 3, NOBODYS = 6 };

static struct {
    struct leat_stream *buckets[BUCKETS];
    struct leat_stream streams[STREAMS]; /* stream i has id i: 0 and NOBODYS are in no table */
    struct leat_stream_desc descs[STREAMS];
    struct leat_partition partition;
    bool gone;
    leat_err stands;
} it;

static const struct leat_log_ref LOG = {ALONE_STREAM, 1, 1};

/* ---- what it calls ---- */

struct leat_stream *leat_stream_find(const struct leat_core *core, uint32_t id)
{
    assert_ptr_equal(core, &alone.cores[0]);
    struct leat_stream *stream = it.buckets[id % BUCKETS];
    while (stream != NULL && stream->desc->id != id)
        stream = stream->by_id_next;
    return stream;
}
struct leat_stream *leat_stream_find_name(const struct leat_core *core, const char *name,
                                          size_t bytes)
{
    assert_int_equal(bytes, 1);
    return leat_stream_find(core, (uint32_t)(name[0] - '0'));
}
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_ptr_equal(core, &alone.cores[0]);
    assert_true(leat_log_ref_equal(ref, LOG));
    return it.gone ? NULL : &it.partition;
}
void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info)
{
    assert_ptr_equal(log, &it);
    *out_info = (struct leat_log_info){.bytes = 77};
}
leat_err leat_node_stands(const struct leat_node *node, struct leat_error *error)
{
    assert_ptr_equal(node, &alone.node);
    assert_null(error);
    return it.stands;
}

/* ---- the tests' own ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    for (uint32_t id = STREAMS - 1; id > 0; id--) {
        struct leat_stream *stream = &it.streams[id];
        if (id == NOBODYS) continue;
        it.descs[id].id = id;
        it.descs[id].internal = id == INTERNAL;
        stream->desc = &it.descs[id];
        stream->published = id != HIDDEN;
        leat_list_init(&stream->waiters);
        stream->by_id_next = it.buckets[id % BUCKETS];
        it.buckets[id % BUCKETS] = stream;
    }
    alone.cores[0].data->streams_by_id = it.buckets;
    alone.cores[0].data->stream_mask = BUCKETS - 1;
    it.partition = (struct leat_partition){.log = (void *)&it, .groups = (void *)&it.partition};
}

/* ---- streams ---- */

static void streams_that_are_served_are_listed_once(void **state)
{
    (void)state;
    begin();
    unsigned times[STREAMS] = {0};
    const struct leat_stream_desc *desc = NULL;
    while ((desc = leat_front_stream_next(&alone.cores[0], desc)) != NULL) {
        assert_in_range(desc->id, 0, STREAMS - 1);
        assert_int_equal(times[desc->id]++, 0);
    }
    for (unsigned id = 0; id < STREAMS; id++)
        assert_int_equal(times[id], id != 0 && id != HIDDEN && id != INTERNAL && id != NOBODYS);
    it.buckets[0] = NULL; /* the first is in the second bucket */
    assert_ptr_equal(leat_front_stream_next(&alone.cores[0], NULL), &it.descs[1]);
    alone_end();
}

static void stream_that_is_not_served_yet_is_only_heard_of(void **state)
{
    (void)state;
    begin();
    const struct leat_core *core = &alone.cores[0];
    static const char *const names[STREAMS] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
    for (uint32_t id = 1; id < STREAMS; id++) {
        const struct leat_stream_desc *there = id == NOBODYS ? NULL : &it.descs[id],
                                      *served = id == HIDDEN ? NULL : there;
        assert_ptr_equal(leat_front_stream(core, id), served);
        assert_ptr_equal(leat_front_stream_named(core, names[id], 1), served);
        bool is_served = id == HIDDEN;
        assert_ptr_equal(leat_front_stream_heard(core, names[id], 1, &is_served), there);
        if (there != NULL) assert_int_equal(is_served, id != HIDDEN);
        assert_ptr_equal(leat_front_stream_heard(core, names[id], 1, NULL), there);
    }
    alone_end();
}

static void those_who_wait_for_a_stream_stand_in_line(void **state)
{
    (void)state;
    begin();
    struct leat_stream_wait waits[3];
    for (unsigned i = 0; i < 3; i++)
        leat_front_stream_wait(&alone.cores[0], HIDDEN, &waits[i]);
    struct leat_list *link = &it.streams[HIDDEN].waiters;
    for (unsigned i = 0; i < 3; i++, link = link->next)
        assert_ptr_equal(link->next, &waits[i].link);
    assert_ptr_equal(link->next, &it.streams[HIDDEN].waiters);
    alone_end();
}

/* ---- logs ---- */

static void log_has_a_home_where_its_streamlet_is_owned(void **state)
{
    (void)state;
    begin();
    uint32_t home = 9;
    assert_true(leat_front_log_home(&alone.cores[0], alone.desc, LOG, &home));
    assert_int_equal(home, 1);
    home = 9;
    alone.desc->streamlets[1].owner = ALONE_SELF + 1;
    assert_false(leat_front_log_home(&alone.cores[0], alone.desc, LOG, &home));
    assert_int_equal(home, 9);
    alone.desc->streamlets[1].owner = ALONE_SELF;
    it.stands = LEAT_E_NOT_OWNER; /* isolated: another node may own the log */
    assert_false(leat_front_log_home(&alone.cores[0], alone.desc, LOG, &home));
    assert_int_equal(home, 9);
    alone_end();
}

static void bytes_of_a_log_that_is_not_here_are_none(void **state)
{
    (void)state;
    begin();
    assert_int_equal(leat_front_log_bytes(&alone.cores[0], LOG), 77);
    it.partition.log = NULL; /* it is being made */
    assert_int_equal(leat_front_log_bytes(&alone.cores[0], LOG), 0);
    it.gone = true;
    assert_int_equal(leat_front_log_bytes(&alone.cores[0], LOG), 0);
    alone_end();
}

/* Goal: groups are served where their log is and stays. */
static void groups_are_served_where_their_log_stays(void **state)
{
    (void)state;
    begin();
    const struct leat_core *core = &alone.cores[0];
    assert_ptr_equal(leat_front_groups(core, LOG), &it.partition);
    it.partition.state = LEAT_PARTITION_GOES;
    assert_null(leat_front_groups(core, LOG));
    it.partition.state = LEAT_PARTITION_SERVES;
    it.gone = true;
    assert_null(leat_front_groups(core, LOG));
    alone_end();
}

/* ---- requests ---- */

/* Goal: the outcome of an append is the refusal of the whole request; else the code and the offset of its batch. */
static void outcome_of_an_append_is_the_requests_or_its_batchs(void **state)
{
    (void)state;
    static const leat_err codes[][3] = {{LEAT_OK, LEAT_OK, LEAT_OK},
                                        {LEAT_OK, LEAT_E_STALE_EPOCH, LEAT_E_STALE_EPOCH},
                                        {LEAT_E_NOT_OWNER, LEAT_OK, LEAT_E_NOT_OWNER}};
    for (unsigned i = 0; i < 3; i++) {
        char text[] = "why";
        struct leat_append_request request = {.rc = codes[i][0], .text = text};
        request.first.rc = codes[i][1];
        request.first.append.first_offset = 40;
        request.first.append.append_time_ms = 50;
        struct leat_append_outcome outcome = leat_append_outcome(&request);
        assert_int_equal(outcome.rc, codes[i][2]);
        assert_ptr_equal(outcome.text, text);
        assert_int_equal(outcome.first_offset, 40);
        assert_int_equal(outcome.append_time_ms, 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_are_served_are_listed_once),
        cmocka_unit_test(stream_that_is_not_served_yet_is_only_heard_of),
        cmocka_unit_test(those_who_wait_for_a_stream_stand_in_line),
        cmocka_unit_test(log_has_a_home_where_its_streamlet_is_owned),
        cmocka_unit_test(bytes_of_a_log_that_is_not_here_are_none),
        cmocka_unit_test(groups_are_served_where_their_log_stays),
        cmocka_unit_test(outcome_of_an_append_is_the_requests_or_its_batchs),
    };
    return cmocka_run_group_tests_name("broker front_logs", tests, NULL, NULL);
}
