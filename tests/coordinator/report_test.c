/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's report of recoveries to the other nodes: when it is sent, to which nodes, each of its fields, and which
 * reports are believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "coordinator/metadata/private.h"
#include "coordinator/recovery/attempt.h"
#include "tests/trace.h"

enum { PEERS = 4, MOST = LEAT_RECOVERY_WAITING_MAX };
enum { REPORT_BYTES_MAX = 64 * 1024, STATUS_FIELDS = 15 };

struct leat_link {
    unsigned number;
    bool up;
};
static struct leat_link links[PEERS];
static struct co_peer peers[PEERS];
static struct leat_coordinator *coordinator;
static struct co_recovery *it;
static uint64_t now_us;
static bool leads, same_cluster;
static struct co_peer *leader;
static leat_err tell_rc;
static uint8_t told[REPORT_BYTES_MAX];
static uint32_t told_bytes;

bool leat_link_is_up(const struct leat_link *link)
{
    return link->up;
}
leat_err leat_link_tell(struct leat_link *link, uint16_t kind, const void *control, uint32_t count)
{
    assert_int_equal(kind, CO_KIND_RECOVERY);
    trace("tell %u\n", link->number);
    if (told_bytes) assert_memory_equal(told, control, count);
    assert_in_range(count, 1, sizeof told);
    memcpy(told, control, count);
    told_bytes = count;
    return tell_rc;
}
void leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    trace("cut %u: %s (%s)\n", link->number, why, leat_err_text(rc));
}
bool co_same_cluster(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    assert_ptr_equal(peer, &peers[1]);
    return same_cluster;
}
struct co_peer *co_peer_leader(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return leader;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
/* Fields that are all different. */
static struct leat_recovery_status status_of(unsigned from, enum leat_recovery_phase phase)
{
    return (struct leat_recovery_status){.attempt = from + 1,
                                         .phase = phase,
                                         .streamlets = from + 3,
                                         .logs = from + 4,
                                         .decided = from + 5,
                                         .nodes_asked = from + 6,
                                         .nodes_answered = from + 7,
                                         .pulls = from + 8,
                                         .pulls_open = from + 9,
                                         .age_us = from + 10,
                                         .collect_us = from + 11,
                                         .prepare_us = from + 12,
                                         .commit_us = from + 13,
                                         .crash_to_commit_us = from + 14,
                                         .recovered = from + 15};
}
struct leat_recovery_status co_recovery_status(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return status_of(100, LEAT_RECOVERY_PREPARE);
}
static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static const struct leat_clock clock_of_test = {.now_us = clock_now};
static const struct leat_env env = {.clock = &clock_of_test};

/* ---- a leader with stream 3, "orders"; peer 1 leads where this one does not ---- */

static int begin(void **state)
{
    (void)state;
    trace_begin();
    coordinator = calloc(1, sizeof *coordinator);
    it = calloc(1, sizeof *it);
    assert_true(coordinator && it);
    coordinator->env = &env;
    coordinator->votes = true;
    coordinator->recovery = it;
    leat_list_init(&coordinator->peers);
    leat_machine_init(&coordinator->machine, 1);
    for (unsigned i = 0; i < PEERS; i++) {
        links[i] = (struct leat_link){.number = i, .up = true};
        peers[i] = (struct co_peer){.link = &links[i], .state = {.voter_id = 20 + i}};
        leat_list_push_back(&coordinator->peers, &peers[i].list);
    }
    struct leat_stream_settings settings = {.streamlets = 1, .logs = 1, .copies = 1};
    struct leat_machine_log *logs;
    struct leat_stream_desc *desc = leat_machine_desc_create(3, "orders", 6, &settings);
    assert_non_null(desc);
    assert_int_equal(leat_machine_stream_add(&coordinator->machine, desc, &logs), LEAT_OK);
    now_us = 100;
    leads = same_cluster = true;
    leader = NULL;
    tell_rc = LEAT_OK;
    told_bytes = 0;
    return 0;
}
static int finish(void **state)
{
    (void)state;
    TRACE_IS("");
    leat_machine_fini(&coordinator->machine);
    free(it);
    free(coordinator);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    return 0;
}
static void recovers(uint32_t waiting)
{
    it->attempt = 5;
    it->attempts = 6;
    it->fruitful = 4;
    it->phase = LEAT_RECOVERY_PREPARE;
    it->last = status_of(200, LEAT_RECOVERY_COMMIT);
    it->waiting_count = waiting;
    for (uint32_t i = 0; i < MOST; i++) {
        struct leat_recovery_waiting *row = &it->waiting[i];
        row->log = (struct leat_log_ref){3 + i % 2, i, i + 1};
        memset(row->why, 'w', sizeof row->why - 1);
        if (i) snprintf(row->why, sizeof row->why, "because %u", i);
    }
}

/* ---- when it is told ---- */

#define ALL "tell 0\ntell 1\ntell 2\ntell 3\n"
static void tells(bool does)
{
    told_bytes = 0;
    co_report_tell(coordinator);
    trace_must_be(does ? ALL : "", __FILE__, __LINE__);
    told_bytes = 0;
    co_report_tell(coordinator);
    trace_must_be("", __FILE__, __LINE__);
}

static void what_changes_is_told_at_once(void **state)
{
    (void)state;
    tells(false); /* nothing was, and no second has passed */
    it->attempt++;
    tells(true);
    it->attempts++;
    tells(true);
    it->phase = LEAT_RECOVERY_COLLECT;
    tells(true);
    it->waiting_count++;
    tells(true);
    it->fruitful++;
    tells(false);
    now_us = 100 + 999999;
    tells(false);
    now_us++;
    tells(true); /* the same again, a second later */
    now_us += 999999;
    tells(false);
    assert_int_equal(it->told.us, 100 + 1000000);
}

static void only_a_leader_that_recovers_tells(void **state)
{
    (void)state;
    it->attempt++;
    leads = false;
    tells(false);
    leads = true;
    coordinator->recovery = NULL;
    tells(false);
    coordinator->recovery = it;
    coordinator->votes = false;
    tells(false);
    coordinator->votes = true;
    tells(true);
}

static void who_is_up_is_told(void **state)
{
    (void)state;
    it->attempt++;
    links[0].up = false;
    peers[2].link = NULL;
    tell_rc = LEAT_E_AGAIN;
    co_report_tell(coordinator);
    TRACE_IS("tell 1\ntell 3\n");
    for (unsigned n = 1; n < 3; n++) { /* told again later */
        it->attempt++;
        leat_mem_fail_at(n);
        co_report_tell(coordinator);
        leat_mem_fail_at(0);
        TRACE_IS("");
    }
}

/* ---- what is told ---- */

static void say_status(struct leat_msg_reader *reader)
{
    trace("%u [", leat_msg_read_array(reader));
    for (unsigned i = 0; i < STATUS_FIELDS; i++)
        trace("%s%u", i ? " " : "", (unsigned)leat_msg_read_u64(reader));
    trace("]\n");
}
static void say_told(void)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, told, told_bytes);
    trace("%u:", leat_msg_read_array(&reader));
    trace(" ended %u\n", (unsigned)leat_msg_read_u64(&reader));
    say_status(&reader);
    say_status(&reader);
    trace("waiting %u", (unsigned)leat_msg_read_u64(&reader));
    uint32_t rows = leat_msg_read_array(&reader);
    trace(" rows %u\n", rows);
    for (uint32_t i = 0; i < rows; i++) {
        trace("%u [", leat_msg_read_array(&reader));
        for (unsigned f = 0; f < 3; f++)
            trace("%u ", (unsigned)leat_msg_read_u64(&reader));
        struct leat_msg_string why = leat_msg_read_string(&reader);
        trace("%u %.*s]\n", why.bytes, why.bytes > 20 ? 4 : (int)why.bytes, why.text);
    }
    assert_true(leat_msg_read_done(&reader));
}

static void every_field_is_told(void **state)
{
    (void)state;
    recovers(2);
    co_report_tell(coordinator);
    TRACE_IS(ALL);
    say_told();
    TRACE_IS("5: ended 4\n15 [101 2 103 104 105 106 107 108 109 110 111 112 113 114 115]\n"
             "15 [201 3 203 204 205 206 207 208 209 210 211 212 213 214 215]\n"
             "waiting 2 rows 2\n4 [3 0 1 239 wwww]\n4 [4 1 2 9 because 1]\n");
    it->phase = LEAT_RECOVERY_NONE;
    it->waiting_count = 0;
    it->last = (struct leat_recovery_status){0};
    told_bytes = 0;
    co_report_tell(coordinator);
    TRACE_IS(ALL);
    say_told();
    TRACE_IS("5: ended 4\n15 [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]\n"
             "15 [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]\nwaiting 0 rows 0\n");
}

static void as_many_rows_as_have_a_place(void **state)
{
    (void)state;
    for (uint32_t count = MOST - 1; count <= MOST + 1; count++) {
        recovers(count);
        for (uint32_t i = 0; i < MOST; i++) { /* the largest that there are */
            it->waiting[i].log = (struct leat_log_ref){UINT32_MAX, UINT32_MAX, UINT32_MAX};
            memset(it->waiting[i].why, 'w', sizeof it->waiting[i].why - 1);
        }
        told_bytes = 0;
        co_report_tell(coordinator);
        TRACE_IS(ALL);
        say_told();
        char head[64];
        snprintf(head, sizeof head, "waiting %u rows %u\n", count, count < MOST ? count : MOST);
        assert_non_null(strstr(trace_text, head));
        trace_begin();
    }
}

/* ---- what is believed ---- */

static void takes(const uint8_t *bytes, uint32_t count)
{
    struct leat_frame frame = {.control = bytes, .control_bytes = count};
    co_report_take(coordinator, &peers[1], &frame);
}
static struct leat_recovery_report *filled(void)
{
    static struct {
        struct leat_recovery_report report;
        struct leat_recovery_waiting behind;
    } room;
    struct leat_recovery_waiting untouched;
    memset(&room, 0x5a, sizeof room);
    memset(&untouched, 0x5a, sizeof untouched);
    co_report_fill(coordinator, &room.report);
    assert_memory_equal(&room.behind, &untouched, sizeof untouched);
    return &room.report;
}
static void expect_report(const struct leat_recovery_report *report, uint32_t count)
{
    struct leat_recovery_status now = status_of(100, LEAT_RECOVERY_PREPARE);
    struct leat_recovery_status last = status_of(200, LEAT_RECOVERY_COMMIT);
    assert_true(report->known && report->ended == 4);
    const size_t fields = offsetof(struct leat_recovery_status, recovered) + sizeof now.recovered;
    assert_memory_equal(&report->now, &now, fields);
    assert_memory_equal(&report->last, &last, fields);
    assert_int_equal(report->waiting_count, count);
    assert_int_equal(report->waiting_rows, count < MOST ? count : MOST);
    for (uint32_t i = 0; i < report->waiting_rows; i++) {
        assert_true(leat_log_ref_equal(report->waiting[i].log, it->waiting[i].log));
        assert_string_equal(report->waiting[i].why, it->waiting[i].why);
        assert_string_equal(report->waiting[i].stream, i % 2 == 0 ? "orders" : "");
    }
    struct leat_recovery_waiting untouched; /* they are large: what is not counted is not written */
    memset(&untouched, 0x5a, sizeof untouched);
    for (uint32_t i = report->waiting_rows; i < MOST; i++)
        assert_memory_equal(&report->waiting[i], &untouched, sizeof untouched);
}
static const struct leat_recovery_report nothing;
static void expect_nothing(void)
{
    assert_memory_equal(filled(), &nothing, offsetof(struct leat_recovery_report, waiting));
}

static void the_leader_fills_in_its_own(void **state)
{
    (void)state;
    recovers(2);
    expect_report(filled(), 2);
    recovers(MOST + 5);
    expect_report(filled(), MOST + 5);
    it->phase = LEAT_RECOVERY_NONE;
    assert_int_equal(filled()->now.attempt, 0);
    coordinator->recovery = NULL;
    expect_nothing();
}

static void others_fill_in_what_the_leader_says(void **state)
{
    (void)state;
    for (uint32_t count = 0; count <= MOST + 1; count += count < 2 ? 1 : MOST - 2) {
        recovers(count);
        leads = true;
        told_bytes = 0;
        co_report_tell(coordinator);
        TRACE_IS(ALL);
        leads = false;
        leader = &peers[1];
        takes(told, told_bytes);
        assert_int_equal(it->heard_from, 21);
        expect_report(filled(), count);
    }
    leader = &peers[2]; /* which has said nothing */
    expect_nothing();
    leader = NULL;
    expect_nothing();
}

static void not_of_another_cluster(void **state)
{
    (void)state;
    recovers(1);
    co_report_tell(coordinator);
    TRACE_IS(ALL);
    leads = same_cluster = false;
    leader = &peers[1];
    takes(told, told_bytes);
    expect_nothing();
    same_cluster = true;
    coordinator->recovery = NULL;
    takes(told, told_bytes);
    coordinator->recovery = it;
    expect_nothing();
    takes(told, told_bytes);
    expect_report(filled(), 1);
}

/* ---- what is malformed: nothing of it stays ---- */

struct shape {
    uint32_t fields, now_fields, phase, logs, rows, row_fields, why_bytes, said_rows;
};
static const struct shape right = {5, STATUS_FIELDS, LEAT_RECOVERY_COMMIT, 1, 1, 4, 239, 1};
static uint32_t shaped(const struct shape *shape)
{
    static char why[300];
    struct leat_msg_writer writer;
    memset(why, 'w', sizeof why);
    leat_msg_writer_init(&writer, told, sizeof told);
    leat_msg_write_array(&writer, shape->fields);
    leat_msg_write_u64(&writer, 4);
    for (unsigned s = 0; s < 2; s++) {
        leat_msg_write_array(&writer, shape->now_fields);
        for (unsigned i = 0; i < STATUS_FIELDS; i++)
            leat_msg_write_u64(&writer, i == 1 ? shape->phase : i == 3 ? shape->logs : 1);
    }
    leat_msg_write_u64(&writer, 70);
    leat_msg_write_array(&writer, shape->said_rows);
    for (uint32_t i = 0; i < shape->rows; i++) {
        leat_msg_write_array(&writer, shape->row_fields);
        for (unsigned f = 0; f < 3; f++)
            leat_msg_write_u64(&writer, 3);
        leat_msg_write_string(&writer, why, shape->why_bytes);
    }
    for (unsigned i = 5; i < shape->fields; i++)
        leat_msg_write_u64(&writer, 1);
    assert_false(writer.overflow);
    return writer.used;
}
static void comes(const struct shape *shape, bool good)
{
    leads = false;
    leader = &peers[1];
    it->heard.known = true;
    it->heard_from = 21;
    takes(told, shaped(shape));
    char all[128];
    snprintf(all, sizeof all, "cut 1: a malformed report of recoveries (%s)\n",
             leat_err_text(LEAT_E_INVALID));
    trace_must_be(good ? "" : all, __FILE__, __LINE__);
    if (!good) expect_nothing();
    if (good) assert_true(filled()->known && filled()->waiting_rows == shape->rows);
}

static void bounds_of_what_is_believed(void **state)
{
    (void)state;
    struct shape shape = right;
    comes(&shape, true);
    takes(told, shaped(&shape) + 1); /* a byte behind the end */
    TRACE_IS("cut 1: a malformed report of recoveries (malformed request)\n");
    expect_nothing();
    shape.fields = 6; /* of a later version */
    comes(&shape, true);
    shape.fields = 4;
    comes(&shape, false);
    for (uint32_t n = STATUS_FIELDS - 1; n <= STATUS_FIELDS + 1; n += 2) {
        shape = right;
        shape.now_fields = n;
        comes(&shape, false);
    }
    shape = right;
    shape.phase = LEAT_RECOVERY_COMMIT + 1;
    comes(&shape, false);
    shape = right;
    shape.rows = shape.said_rows = MOST;
    comes(&shape, true);
    shape.rows = shape.said_rows = MOST + 1;
    comes(&shape, false);
    shape.rows = shape.said_rows = 0;
    comes(&shape, true);
    shape = right;
    shape.why_bytes = 240;
    comes(&shape, false);
    shape.why_bytes = 0;
    comes(&shape, true);
    for (uint32_t n = 3; n <= 5; n += 2) {
        shape = right;
        shape.row_fields = n;
        comes(&shape, false);
    }
}

static void cut_short_it_is_malformed(void **state)
{
    (void)state;
    struct shape shape = right;
    shape.why_bytes = 3;
    uint32_t whole = shaped(&shape);
    char all[128];
    snprintf(all, sizeof all, "cut 1: a malformed report of recoveries (%s)\n",
             leat_err_text(LEAT_E_INVALID));
    leads = false;
    leader = &peers[1];
    for (uint32_t count = 0; count < whole; count++) {
        it->heard.known = true;
        it->heard_from = 21;
        takes(told, count);
        TRACE_IS(all);
        expect_nothing();
    }
}

#define REPORT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
int main(void)
{
    const struct CMUnitTest tests[] = {
        REPORT_TEST(what_changes_is_told_at_once),
        REPORT_TEST(only_a_leader_that_recovers_tells),
        REPORT_TEST(who_is_up_is_told),
        REPORT_TEST(every_field_is_told),
        REPORT_TEST(as_many_rows_as_have_a_place),
        REPORT_TEST(the_leader_fills_in_its_own),
        REPORT_TEST(others_fill_in_what_the_leader_says),
        REPORT_TEST(not_of_another_cluster),
        REPORT_TEST(bounds_of_what_is_believed),
        REPORT_TEST(cut_short_it_is_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
