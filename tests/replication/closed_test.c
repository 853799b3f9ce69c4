/* Closed segments: which copy is one too many, and what is written into one that is made anew. A primary alone. */
#include "tests/replication/case_rig.h"

static void closed_one(void)
{
    begun();
    calm();
    set->closed = true;
    set->seg->state = LEAT_SEGMENT_CLOSED;
    set->seg->extent = (struct leat_extent){128, 128};
    set->copies[0]->state = set->copies[1]->state = REP_COPY_CLOSED;
    set->copies[0]->peer->open_count = set->copies[1]->peer->open_count = 0;
}

static void surplus(void)
{
    rep_better_surplus(set);
    trace(".\n");
}

/* Goal: of more copies than are wanted the one that lies worst goes, or any; none while anything is under way, or one
 * of them is not known to count. */
static void copy_that_is_one_too_many_goes(void **state)
{
    (void)state;
    CASE_AS_IT_IS(closed_one, surplus);
    CASE(closed_one, surplus, owned->options.copies = 2);
    CASE(closed_one, surplus, owned->options.copies = 2, memcpy(copy->peer->node.host, "h0", 3));
    CASE(closed_one, surplus, owned->options.copies = 2,
         memcpy(set->copies[1]->peer->node.host, "h0", 3));
    CASE(closed_one, surplus, owned->options.copies = 2, copy->incomplete = true);
    CASE(closed_one, surplus, owned->options.copies = 2, copy->found = true);
    CASE(closed_one, surplus, owned->options.copies = 2, copy->writes = 1);
    CASE(closed_one, surplus, owned->options.copies = 2, copy->batched = true);
    CASE(closed_one, surplus, owned->options.copies = 2, copy->state = REP_COPY_OPEN);
    CASE(closed_one, surplus, owned->options.copies = 2, set->closed = false);
    CASE(closed_one, surplus, owned->options.copies = 2, set->dropping = true);
    CASE(closed_one, surplus, owned->options.copies = 2, set->close = (void *)set);
    CASE(closed_one, surplus, owned->options.copies = 2, set->evict = (void *)set);
    CASE(closed_one, surplus, owned->options.copies = 2, set->seg->rotten = true);
    TRACE_IS("(void)0: .\n"
             "owned->options.copies = 2: n1 DROP s0 h10 v1 d1, 2 s\n"
             ".\n"
             "owned->options.copies = 2, memcpy(copy->peer->node.host, \"h0\", 3): n1 DROP s0 h10 "
             "v1 d1, 2 s\n"
             ".\n"
             "owned->options.copies = 2, memcpy(set->copies[1]->peer->node.host, \"h0\", 3): n2 "
             "DROP s0 h20 v1 d1, 2 s\n"
             ".\n"
             "owned->options.copies = 2, copy->incomplete = true: .\n"
             "owned->options.copies = 2, copy->found = true: .\n"
             "owned->options.copies = 2, copy->writes = 1: .\n"
             "owned->options.copies = 2, copy->batched = true: .\n"
             "owned->options.copies = 2, copy->state = REP_COPY_OPEN: .\n"
             "owned->options.copies = 2, set->closed = false: .\n"
             "owned->options.copies = 2, set->dropping = true: .\n"
             "owned->options.copies = 2, set->close = (void *)set: .\n"
             "owned->options.copies = 2, set->evict = (void *)set: .\n"
             "owned->options.copies = 2, set->seg->rotten = true: .\n");
}

static void made_anew(void)
{
    closed_one();
    for (unsigned i = 0; i < RIG_CAPACITY; i++)
        rig->buffers[0][i] = (uint8_t)(i * 7);
    copy->state = REP_COPY_OPEN;
    copy->peer->open_count = 1;
    copy->incomplete = true;
    copy->sent = copy->done = 0;
    rig->primary->recopy = set;
    rig->primary->recopy_copy = copy;
    rig->primary->recopy_us = rig->now_us;
    rig->primary->recopy_bytes = 4096;
}

static void recopy(void)
{
    rep_recopy_step(rig->primary, rig->now_us);
    bool same = copy->sent <= 128 && memcmp(rig->primary->staging, rig->buffers[0] + copy->done,
                                            copy->sent - copy->done) == 0;
    trace("-> %s, sent %u of %u, %llu left%s%s\n", same ? "as it is" : "other bytes", copy->sent,
          set->seg->extent.bytes, (unsigned long long)rig->primary->recopy_bytes,
          rig->primary->reading ? ", reading" : "", rig->primary->recopy ? "" : ", done");
}

/* Goal: a copy that is made anew gets what is not there yet, out of memory or of the file, as fast as is allowed and one
 * piece at a time. */
static void copy_that_is_made_anew_gets_what_is_missing(void **state)
{
    (void)state;
    CASE_AS_IT_IS(made_anew, recopy);
    CASE(made_anew, recopy, copy->sent = copy->done = 100);
    CASE(made_anew, recopy, copy->sent = copy->done = 128);
    CASE(made_anew, recopy, set->seg->buffer = NULL);
    CASE(made_anew, recopy, rig->primary->recopy_bytes = 127);
    CASE(made_anew, recopy, rig->primary->recopy_bytes = 128);
    CASE(made_anew, recopy, rig->primary->recopy_bytes = 27, copy->sent = copy->done = 100);
    CASE(made_anew, recopy, copy->state = REP_COPY_OPENING);
    CASE(made_anew, recopy, copy->state = REP_COPY_CLOSED);
    CASE(made_anew, recopy, copy->writes = 1);
    CASE(made_anew, recopy, copy->session--);
    CASE(made_anew, recopy, set->dropping = true);
    CASE(made_anew, recopy, rig->primary->reading = true);
    CASE(made_anew, recopy, rig->write_rc = LEAT_E_CLOSED);
    TRACE_IS("(void)0: n1 write @4096+128 from staging\n"
             "-> as it is, sent 128 of 128, 3968 left\n"
             "copy->sent = copy->done = 100: n1 write @4196+28 from staging\n"
             "-> as it is, sent 128 of 128, 4068 left\n"
             "copy->sent = copy->done = 128: -> as it is, sent 128 of 128, 4096 left\n"
             "set->seg->buffer = NULL: read 65536+4096\n"
             "-> as it is, sent 0 of 128, 4096 left, reading\n"
             "rig->primary->recopy_bytes = 127: -> as it is, sent 0 of 128, 127 left\n"
             "rig->primary->recopy_bytes = 128: n1 write @4096+128 from staging\n"
             "-> as it is, sent 128 of 128, 0 left\n"
             "rig->primary->recopy_bytes = 27, copy->sent = copy->done = 100: -> as it is, sent "
             "100 of 128, 27 left\n"
             "copy->state = REP_COPY_OPENING: -> as it is, sent 0 of 128, 4096 left\n"
             "copy->state = REP_COPY_CLOSED: -> as it is, sent 0 of 128, 4096 left, done\n"
             "copy->writes = 1: -> as it is, sent 0 of 128, 4096 left\n"
             "copy->session--: -> as it is, sent 0 of 128, 4096 left\n"
             "set->dropping = true: -> as it is, sent 0 of 128, 4096 left\n"
             "rig->primary->reading = true: -> as it is, sent 0 of 128, 4096 left, reading\n"
             "rig->write_rc = LEAT_E_CLOSED: -> as it is, sent 0 of 128, 4096 left\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(copy_that_is_one_too_many_goes),
        TRACE_TEST(copy_that_is_made_anew_gets_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
