/* SPDX-License-Identifier: Apache-2.0 */
/* A log's version that has been raised: when it may be told, in which company, and what follows from the answer. A
 * primary alone. */
#include "tests/replication/case_rig.h"

/* ---- when ---- */

/* All carry 2, and that is to be told. */
static void raised(void)
{
    begun();
    calm();
    owned->need = owned->version = 2;
    owned->known = 1;
    owned->held_us = rig->now_us;
    set->stamped = 2;
    for (unsigned i = 0; i < set->copy_count; i++)
        set->copies[i]->stamp = 2;
}

/* The same, and one copy is lost; node 3 could have another. */
static void one_less(void)
{
    raised();
    rep_copy_remove(copy);
    copy = NULL;
    calm();
}

static void step(void)
{
    rep_version_step(owned);
    trace("%s", leat_list_empty(&owned->version_link) ? "not told" : "in line");
    armed_trace();
}

static void late(void)
{
    owned->held_us = rig->now_us - rig->primary->options.open_wait_us;
}

/* Goal: a generation is sent when all copies that it covers have it, and as many as acks need. */
static void version_is_told_when_all_carry_it(void **state)
{
    (void)state;
    CASE_AS_IT_IS(raised, step);
    CASE(raised, step, owned->opened = false);
    CASE(raised, step, owned->known = 2);
    CASE(raised, step, owned->version_busy = true);
    CASE(raised, step, owned->fenced = true);
    CASE(raised, step, set->stamped = 1);
    CASE(raised, step, set->stamped = 1, set->state = REP_SET_CLOSED);
    CASE(raised, step, set->stamped = 1, set->dropping = true);
    CASE(raised, step, set->stamped = 1, set->seg = NULL);
    CASE(raised, step, set->state = REP_SET_RESUMING);
    CASE(raised, step, set->state = REP_SET_HIBERNATING);
    CASE(raised, step, set->resume = (struct leat_store_req *)(void *)set);
    CASE(raised, step, copy->stamp = 1);
    CASE(raised, step, copy->incomplete = true);
    CASE(raised, step, copy->state = REP_COPY_OPENING);
    CASE(raised, step, copy->state = REP_COPY_OPENING, set->state = REP_SET_RESERVED);
    CASE_AS_IT_IS(one_less, step);
    CASE(one_less, step, set->state = REP_SET_RESERVED);
    CASE(one_less, step, late());
    CASE(one_less, step, late(), owned->held_us++);
    CASE(one_less, step, owned->options.copies = 2);
    CASE(one_less, step, rig_peer(rig, 1)->state = rig_peer(rig, 3)->state = REP_PEER_DOWN);
    CASE(one_less, step, late(), owned->options.min_copies = 3);
    CASE(one_less, step, late(), owned->options.min_copies = 3, set->state = REP_SET_RESERVED);
    TRACE_IS("(void)0: in line\n"
             "owned->opened = false: not told\n"
             "owned->known = 2: not told\n"
             "owned->version_busy = true: not told\n"
             "owned->fenced = true: not told\n"
             "set->stamped = 1: not told, again in 20000 us\n"
             "set->stamped = 1, set->state = REP_SET_CLOSED: in line\n"
             "set->stamped = 1, set->dropping = true: in line\n"
             "set->stamped = 1, set->seg = NULL: in line\n"
             "set->state = REP_SET_RESUMING: not told, again in 20000 us\n"
             "set->state = REP_SET_HIBERNATING: not told, again in 20000 us\n"
             "set->resume = (struct leat_store_req *)(void *)set: not told, again in 20000 us\n"
             "copy->stamp = 1: not told, again in 20000 us\n"
             "copy->incomplete = true: not told, again in 20000 us\n"
             "copy->state = REP_COPY_OPENING: not told, again in 20000 us\n"
             "copy->state = REP_COPY_OPENING, set->state = REP_SET_RESERVED: in line\n"
             "(void)0: not told, again in 20000 us\n"
             "set->state = REP_SET_RESERVED: in line\n"
             "late(): in line\n"
             "late(), owned->held_us++: not told, again in 20000 us\n"
             "owned->options.copies = 2: in line\n"
             "rig_peer(rig, 1)->state = rig_peer(rig, 3)->state = REP_PEER_DOWN: in line\n"
             "late(), owned->options.min_copies = 3: not told, again in 20000 us\n"
             "late(), owned->options.min_copies = 3, set->state = REP_SET_RESERVED: in line\n");
}

/* Goal: a log that wants to be opened learns the stamp that all counted copies have. */
static void opening_says_what_all_copies_carry(void **state)
{
    (void)state;
    static const char *const cases[] = {"as it is",   "closed",     "not started",
                                        "no segment", "set",        "copy is less",
                                        "opening",    "incomplete", "too few"};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        raised();
        set->state = i == 1 ? REP_SET_CLOSED : i == 2 ? REP_SET_RESERVED : REP_SET_STARTED;
        struct leat_segment *seg = set->seg;
        if (i == 3) set->seg = NULL;
        if (i >= 1 && i <= 4) set->stamped = 1;
        if (i >= 5) copy->stamp = 1;
        if (i == 6) copy->state = REP_COPY_OPENING;
        copy->incomplete = i == 7;
        if (i == 8) copy->stamp = 2, owned->options.min_copies = 4;
        trace("%s: %u", cases[i], leat_primary_opening(owned));
        trace(" %u%s\n", owned->known, owned->opening ? "" : "?");
        set->seg = seg;
    }
    TRACE_IS("as it is: 2 2\n"
             "closed: 2 2\n"
             "not started: 2 2\n"
             "no segment: 2 2\n"
             "set: 1 1\n"
             "copy is less: 1 1\n"
             "opening: 2 2\n"
             "incomplete: 2 2\n"
             "too few: 1 1\n");
}

/* ---- in which company ---- */

static struct leat_primary_log **logs;
static unsigned log_count;

static void logs_make(unsigned count)
{
    size_t used = trace_used;
    rig = rig_new(1);
    rig->quiet = true;
    logs = calloc(count, sizeof *logs);
    log_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct leat_primary_log_options options = rig_log_options(LEAT_DURABILITY_MEMORY, 3);
        options.ref.log = i;
        options.opened = true;
        assert_int_equal(leat_primary_log_create(rig->primary, &options, NULL, 0, &logs[i]),
                         LEAT_OK);
        logs[i]->need = logs[i]->version = 2;
        rep_version_step(logs[i]);
    }
    calm();
    rig->quiet = false;
    trace_text[trace_used = used] = '\0';
}

static void logs_end(void)
{
    size_t used = trace_used;
    rig->quiet = true;
    for (unsigned i = 0; i < log_count; i++)
        leat_primary_log_destroy(&logs[i]);
    free(logs);
    rig_free(rig);
    trace_text[trace_used = used] = '\0';
}

static void tell(void)
{
    rep_versions_send(rig->primary);
    for (unsigned i = 0; i < log_count; i++) {
        const struct leat_primary_log *log = logs[i];
        if (!log) continue;
        trace(" %u: known %u%s%s%s%s", i, log->known, log->version_busy ? " busy" : "",
              log->version_alone ? " alone" : "", log->fenced ? " fenced" : "",
              leat_list_empty(&log->version_link) ? "" : " in line");
    }
    trace(", told %u", (unsigned)rig->primary->accounts.versions);
    armed_trace();
}

static void done(leat_err rc)
{
    trace("%s:\n", leat_err_name(rc));
    calm();
    leat_primary_versions_done(rig->primary, rc);
    rig_mails(rig);
    tell();
}

/* Goal: the generations of several logs are sent together; after a refusal each log's is sent by itself, so that the
 * refused log shows. */
static void refusal_shows_whose_it_is(void **state)
{
    (void)state;
    logs_make(3);
    tell();
    done(LEAT_E_STALE_EPOCH);
    done(LEAT_OK);
    done(LEAT_E_STALE_EPOCH);
    done(LEAT_OK);
    logs[0]->need = logs[0]->version = 3; /* it may be told with others again */
    logs[2]->need = logs[2]->version = 3;
    rep_version_step(logs[0]);
    rep_version_step(logs[2]);
    tell();
    logs[0]->known = 4;
    done(LEAT_OK);
    TRACE_IS(
        "versions 1/2/0=e5v2 1/2/1=e5v2 1/2/2=e5v2\n"
        " 0: known 1 busy 1: known 1 busy 2: known 1 busy, told 0\n"
        "STALE_EPOCH:\n"
        "versions 1/2/0=e5v2\n"
        " 0: known 1 busy alone 1: known 1 alone in line 2: known 1 alone in line, told 0, again "
        "in 20000 us\n"
        "OK:\n"
        "versions 1/2/1=e5v2\n"
        " 0: known 2 1: known 1 busy alone 2: known 1 alone in line, told 1\n"
        "STALE_EPOCH:\n"
        "versions 1/2/2=e5v2\n"
        " 0: known 2 1: known 1 alone fenced 2: known 1 busy alone, told 1, again in 20000 us\n"
        "OK:\n"
        " 0: known 2 1: known 1 alone fenced 2: known 2, told 2\n"
        "versions 1/2/0=e5v3 1/2/2=e5v3\n"
        " 0: known 2 busy 1: known 1 alone fenced 2: known 2 busy, told 2\n"
        "OK:\n"
        " 0: known 4 1: known 1 alone fenced 2: known 3, told 4\n");
    logs_end();
}

/* Goal: a log that must be reported alone is the only log in its report, wherever in the list it stands. */
static void log_that_is_alone_is_told_alone(void **state)
{
    (void)state;
    for (unsigned alone = 0; alone < 3; alone++) {
        logs_make(3);
        logs[alone]->version_alone = true;
        trace("%u alone\n", alone);
        tell();
        done(LEAT_OK);
        done(LEAT_OK);
        logs_end();
    }
    TRACE_IS("0 alone\n"
             "versions 1/2/0=e5v2\n"
             " 0: known 1 busy alone 1: known 1 in line 2: known 1 in line, told 0\n"
             "OK:\n"
             "versions 1/2/1=e5v2 1/2/2=e5v2\n"
             " 0: known 2 1: known 1 busy 2: known 1 busy, told 1\n"
             "OK:\n"
             " 0: known 2 1: known 2 2: known 2, told 3\n"
             "1 alone\n"
             "versions 1/2/0=e5v2\n"
             " 0: known 1 busy 1: known 1 alone in line 2: known 1 in line, told 0\n"
             "OK:\n"
             "versions 1/2/1=e5v2\n"
             " 0: known 2 1: known 1 busy alone 2: known 1 in line, told 1\n"
             "OK:\n"
             "versions 1/2/2=e5v2\n"
             " 0: known 2 1: known 2 2: known 1 busy, told 2\n"
             "2 alone\n"
             "versions 1/2/0=e5v2 1/2/1=e5v2\n"
             " 0: known 1 busy 1: known 1 busy 2: known 1 alone in line, told 0\n"
             "OK:\n"
             "versions 1/2/2=e5v2\n"
             " 0: known 2 1: known 2 2: known 1 busy alone, told 2\n"
             "OK:\n"
             " 0: known 2 1: known 2 2: known 2, told 3\n");
}

/* Goal: while the coordinator can't be asked it is asked again later, and nobody is to blame. */
static void versions_are_told_again_later(void **state)
{
    (void)state;
    logs_make(1);
    tell();
    done(LEAT_E_TIMEOUT);
    rig->now_us += REP_RETRY_US - 1;
    calm();
    tell();
    rig->now_us++;
    calm();
    tell();
    done(LEAT_E_TIMEOUT);
    leat_list_remove(&logs[0]->version_link); /* nobody waits for it */
    calm();
    tell();
    TRACE_IS("versions 1/2/0=e5v2\n"
             " 0: known 1 busy, told 0\n"
             "TIMEOUT:\n"
             " 0: known 1 in line, told 0, again in 20000 us\n"
             " 0: known 1 in line, told 0, again in 200000 us\n"
             "versions 1/2/0=e5v2\n"
             " 0: known 1 busy, told 0\n"
             "TIMEOUT:\n"
             " 0: known 1 in line, told 0, again in 20000 us\n"
             " 0: known 1, told 0\n");
    logs_end();
}

/* Goal: a log that went while it was told is nobody's; another that carries it no more waits. */
static void log_that_has_gone_is_not_told(void **state)
{
    (void)state;
    logs_make(2);
    tell();
    leat_primary_log_destroy(&logs[0]);
    done(LEAT_OK);
    TRACE_IS("versions 1/2/0=e5v2 1/2/1=e5v2\n"
             " 0: known 1 busy 1: known 1 busy, told 0\n"
             "OK:\n"
             " 1: known 2, told 1\n");
    logs_end();
}

/* Goal: no more generations are sent at one time than a body has rows; the other logs come next. */
static void versions_are_told_as_many_as_there_are_rows_for(void **state)
{
    (void)state;
    logs_make(REP_VERSION_ROWS_MAX + 1);
    rig->quiet = true;
    rep_versions_send(rig->primary);
    assert_int_equal(rig->primary->version_count, REP_VERSION_ROWS_MAX);
    assert_false(leat_list_empty(&logs[REP_VERSION_ROWS_MAX]->version_link));
    leat_primary_log_destroy(&logs[0]); /* a sanitizer sees a look behind the full table */
    assert_null(rig->primary->version_logs[0]);
    leat_primary_versions_done(rig->primary, LEAT_OK);
    assert_int_equal(rig->primary->version_count, 0);
    rep_versions_send(rig->primary);
    assert_int_equal(rig->primary->version_count, 1);
    assert_ptr_equal(rig->primary->version_logs[0], logs[REP_VERSION_ROWS_MAX]);
    leat_primary_versions_done(rig->primary, LEAT_OK);
    logs_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(version_is_told_when_all_carry_it),
        TRACE_TEST(opening_says_what_all_copies_carry),
        TRACE_TEST(refusal_shows_whose_it_is),
        TRACE_TEST(log_that_is_alone_is_told_alone),
        TRACE_TEST(versions_are_told_again_later),
        TRACE_TEST(log_that_has_gone_is_not_told),
        TRACE_TEST(versions_are_told_as_many_as_there_are_rows_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
