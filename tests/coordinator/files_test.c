/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of raft's files and messages that are refused although the checksum is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "coordinator/coordinator.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/state.h"
#include "coordinator/raft/private.h"
#include "tests/coordinator/fake.h"

enum { CONF_BYTES_MAX = 256 };

/* As libraft encodes it, without what it fills up to eight bytes with. */
static size_t conf_make(uint8_t *out, const uint64_t *ids, const char *const *addresses,
                        const uint8_t *roles, unsigned count)
{
    size_t at = 9;
    out[0] = 1;
    leat_put_le64(out + 1, count);
    for (unsigned i = 0; i < count; i++) {
        leat_put_le64(out + at, ids[i]);
        size_t bytes = strlen(addresses[i]) + 1;
        memcpy(out + at + 8, addresses[i], bytes);
        at += 8 + bytes;
        out[at++] = roles[i];
    }
    return at;
}

static size_t good_conf(uint8_t out[CONF_BYTES_MAX])
{
    return conf_make(out, (uint64_t[]){1, 2}, (const char *[]){"1", "n2:7701"},
                     (uint8_t[]){RAFT_VOTER, RAFT_SPARE}, 2);
}

/* Before a page without rights: who reads past the end dies of it. */
static bool conf_passes(const uint8_t *bytes, size_t count)
{
    enum { PAGE = 4096 };
    static uint8_t *pages;
    if (!pages) {
        pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(pages != MAP_FAILED);
        assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    }
    assert_true(count <= PAGE);
    memset(pages, 0xff, PAGE - count);
    memcpy(pages + PAGE - count, bytes, count);
    return leat_raft_configuration_valid(pages + PAGE - count, count);
}

/* A configuration with as many servers as may be, and with one more. */
static void files_configuration_of_too_many_servers_does_not_pass(void **state)
{
    (void)state;
    enum { MOST = 64 };
    uint8_t bytes[(MOST + 1) * 16], roles[MOST + 1];
    uint64_t ids[MOST + 1];
    char texts[MOST + 1][4];
    const char *addresses[MOST + 1];
    for (unsigned i = 0; i <= MOST; i++) {
        snprintf(texts[i], sizeof texts[i], "%u", i);
        addresses[i] = texts[i];
        ids[i] = 100 + i;
        roles[i] = (uint8_t)(i % 3);
    }
    for (unsigned count = 1; count <= MOST + 1; count++) {
        size_t whole = conf_make(bytes, ids, addresses, roles, count);
        assert_int_equal(conf_passes(bytes, whole), count <= MOST);
        leat_put_le64(bytes + 1, UINT64_MAX);
        assert_false(conf_passes(bytes, whole));
    }
    /* The last may be none of the others, whichever. */
    for (unsigned i = 0; i < MOST - 1; i++)
        for (unsigned same = 0; same < 2; same++) {
            ids[MOST - 1] = ids[same ? MOST : i];
            addresses[MOST - 1] = addresses[same ? i : MOST];
            size_t whole = conf_make(bytes, ids, addresses, roles, MOST);
            assert_false(conf_passes(bytes, whole));
        }
}

static void files_configuration_that_libraft_cannot_read_does_not_pass(void **state)
{
    (void)state;
    uint8_t bytes[CONF_BYTES_MAX];
    size_t count = good_conf(bytes);
    assert_true(conf_passes(bytes, count));
    for (size_t i = 0; i < count; i++)
        assert_false(conf_passes(bytes, i));
    struct raft_configuration configuration;
    struct raft_buffer encoded;
    raft_configuration_init(&configuration);
    assert_int_equal(raft_configuration_add(&configuration, 7, "n7:7701", RAFT_VOTER), 0);
    assert_int_equal(raft_configuration_encode(&configuration, &encoded), 0);
    assert_true(conf_passes(encoded.base, encoded.len));
    raft_free(encoded.base);
    raft_configuration_close(&configuration);
    struct {
        uint64_t ids[2];
        const char *addresses[2];
        uint8_t roles[2];
    } rows[] = {{{1, 1}, {"a", "b"}, {1, 1}}, /* an id twice, an address twice, no id, no role */
                {{1, 2}, {"a", "a"}, {1, 1}},
                {{1, 0}, {"a", "b"}, {1, 1}},
                {{1, 2}, {"a", "b"}, {1, 3}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        count = conf_make(bytes, rows[i].ids, rows[i].addresses, rows[i].roles, 2);
        assert_false(conf_passes(bytes, count));
    }
    assert_false(conf_passes(bytes, conf_make(bytes, NULL, NULL, NULL, 0)));
    count = conf_make(bytes, (uint64_t[]){1}, (const char *[]){""}, (uint8_t[]){RAFT_VOTER}, 1);
    assert_true(conf_passes(bytes, count)); /* an address may be empty */
    count = good_conf(bytes);
    bytes[0] = 2;
    assert_false(conf_passes(bytes, count));
}

/* ---- a message ---- */

static leat_err message_take(uint32_t type, const uint8_t *data, size_t count)
{
    uint8_t control[160], payload[16 + CONF_BYTES_MAX];
    struct leat_msg_writer w;
    struct raft_message message;
    uint64_t to;
    leat_msg_writer_init(&w, control, sizeof control);
    leat_msg_write_array(&w, 10);
    const uint64_t fields[] = {1, RAFT_APPEND_ENTRIES, 1, 2, 0, 3, 0, 0, 0, 1};
    for (unsigned i = 0; i < 10; i++)
        leat_msg_write_u64(&w, fields[i]);
    leat_put_le32(payload, (uint32_t)count);
    leat_put_le32(payload + 4, type);
    leat_put_le64(payload + 8, 3);
    if (count) memcpy(payload + 16, data, count);
    struct leat_frame frame = {.control = control,
                               .control_bytes = w.used,
                               .payload = payload,
                               .payload_bytes = (uint32_t)(16 + count)};
    leat_err rc = co_message_decode(&frame, &message, &to);
    if (rc == LEAT_OK) leat_raft_message_drop(&message);
    return rc;
}

static void files_message_with_a_configuration_that_is_none_is_malformed(void **state)
{
    (void)state;
    uint8_t conf[CONF_BYTES_MAX];
    size_t count = good_conf(conf);
    assert_int_equal(message_take(RAFT_CHANGE, conf, count), LEAT_OK);
    assert_int_equal(message_take(RAFT_COMMAND, conf, 3), LEAT_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(message_take(RAFT_CHANGE, conf, i), LEAT_E_INVALID);
}

/* ---- files ---- */

static leat_err voter_start(struct fake_world *world)
{
    struct leat_coordinator_options options = {.cores = 1};
    struct leat_coordinator *coordinator = NULL;
    struct leat_error error = {.code = LEAT_OK};
    leat_err rc = leat_coordinator_open(&world->env, &options, &coordinator, &error);
    assert_int_equal(rc, error.code);
    assert_true(rc == LEAT_OK || strstr(error.text, "log") != NULL);
    leat_coordinator_close(&coordinator);
    return rc;
}

/* A log of the first configuration and one entry more, in a round. */
static leat_err log_start(struct leat_raft_entry first, struct leat_raft_entry second,
                          uint64_t from)
{
    struct fake_world *world = calloc(1, sizeof *world);
    struct leat_raft_log log;
    struct leat_error error;
    bool is_new;
    assert_non_null(world);
    fake_world_init(world, 1);
    assert_int_equal(leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error), LEAT_OK);
    assert_int_equal(leat_raft_log_form(&log, NULL, 0, &error), LEAT_OK);
    assert_int_equal(leat_raft_log_vote(&log, 9, 0), LEAT_OK);
    log.start_index = from;
    log.written_index = from - 1;
    assert_int_equal(
        leat_raft_log_append(&log, from, first.term, first.type, first.data, first.bytes), LEAT_OK);
    assert_int_equal(
        leat_raft_log_append(&log, from + 1, second.term, second.type, second.data, second.bytes),
        LEAT_OK);
    assert_int_equal(leat_raft_log_flush_now(&log), LEAT_OK);
    leat_raft_log_close(&log);
    leat_err rc = voter_start(world);
    fake_world_fini(world);
    free(world);
    return rc;
}

static void files_entry_that_raft_cannot_have_given_keeps_the_voter_out(void **state)
{
    (void)state;
    uint8_t conf[CONF_BYTES_MAX];
    uint32_t count = (uint32_t)good_conf(conf);
    const struct leat_raft_entry first = {1, RAFT_CHANGE, count, conf};
    assert_int_equal(log_start(first, (struct leat_raft_entry){1, RAFT_BARRIER, 0, conf}, 1),
                     LEAT_OK);
    const struct leat_raft_entry bad[] = {
        {1, 0, 0, conf},                   /* of no type */
        {1, RAFT_CHANGE + 1, 0, conf},     /* the same */
        {0, RAFT_BARRIER, 0, conf},        /* of no term */
        {1, RAFT_CHANGE, count - 1, conf}, /* cut off */
        {1, RAFT_CHANGE, 0, conf},         /* the same */
        {10, RAFT_BARRIER, 0, conf},       /* of a term that the vote does not know */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(log_start(first, bad[i], 1), LEAT_E_DAMAGED);
    const struct leat_raft_entry later = {2, RAFT_CHANGE, count, conf};
    assert_int_equal(log_start(later, first, 1), LEAT_E_DAMAGED); /* its term falls */
    assert_int_equal(log_start(first, first, UINT64_MAX - 5), LEAT_E_DAMAGED);
}

/* The unsynced writes of a killed voter are in the page cache. The next start counts on these writes, so a power cut
 * must not lose them. */
static void files_that_a_killed_voter_left_are_synced_at_the_start(void **state)
{
    (void)state;
    static const char *const paths[] = {"raft/vote", "raft/log-00000000000000000001"};
    struct fake_world *world = calloc(1, sizeof *world);
    uint8_t conf[CONF_BYTES_MAX];
    struct leat_raft_log log;
    struct leat_error error;
    bool is_new;
    assert_non_null(world);
    fake_world_init(world, 1);
    assert_int_equal(leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error), LEAT_OK);
    assert_int_equal(leat_raft_log_form(&log, NULL, 0, &error), LEAT_OK);
    assert_int_equal(leat_raft_log_vote(&log, 9, 0), LEAT_OK);
    log.start_index = 1;
    assert_int_equal(leat_raft_log_append(&log, 1, 1, RAFT_CHANGE, conf, (uint32_t)good_conf(conf)),
                     LEAT_OK);
    assert_int_equal(leat_raft_log_flush_now(&log), LEAT_OK);
    leat_raft_log_close(&log);
    for (unsigned i = 0; i < 2; i++) {
        struct fake_inode *file = fake_world_file(world, paths[i]);
        assert_non_null(file);
        assert_true(file->bytes > 0);
        file->dirty_to = file->bytes;
    }
    assert_int_equal(leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error), LEAT_OK);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(fake_world_file(world, paths[i])->dirty_to, 0);
    leat_raft_log_close(&log);
    fake_world_fini(world);
    free(world);
}

/* A round that fails its check, followed by a valid round, was synced before the valid round was begun, whether the
 * vote has a mark of the first round or not: the fault is damage, not a write that was cut off. */
static void files_round_in_front_of_a_right_one_is_damaged(void **state)
{
    (void)state;
    for (unsigned row = 0; row < 3; row++) {
        uint8_t conf[CONF_BYTES_MAX];
        uint32_t count = (uint32_t)good_conf(conf);
        struct fake_world *world = calloc(1, sizeof *world);
        struct leat_raft_log log;
        struct leat_error error;
        bool is_new;
        assert_non_null(world);
        fake_world_init(world, 1);
        assert_int_equal(leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error), LEAT_OK);
        assert_int_equal(leat_raft_log_form(&log, NULL, 0, &error), LEAT_OK);
        assert_int_equal(leat_raft_log_vote(&log, 9, 0), LEAT_OK);
        log.start_index = 1;
        uint64_t ends[2];
        for (uint64_t i = 0; i < 2; i++) {
            assert_int_equal(leat_raft_log_append(&log, i + 1, 1, RAFT_CHANGE, conf, count),
                             LEAT_OK);
            assert_int_equal(leat_raft_log_flush_now(&log), LEAT_OK);
            ends[i] = log.segments[log.segment_count - 1].end;
        }
        log.failed = LEAT_E_DISK; /* it notes nothing more */
        leat_raft_log_close(&log);
        struct fake_inode *file = fake_world_file(world, "raft/log-00000000000000000001");
        if (row > 0) file->now[ends[row - 1] - 1 - 8] ^= 1;
        leat_err rc = leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error);
        assert_int_equal(rc, row == 1 ? LEAT_E_DAMAGED : LEAT_OK); /* the last may be torn */
        if (rc == LEAT_OK) leat_raft_log_close(&log);
        fake_world_fini(world);
        free(world);
    }
}

static void on_saved(void *owner, leat_err rc)
{
    (void)owner;
    assert_int_equal(rc, LEAT_OK);
}

static leat_err snapshot_start(uint64_t term, const uint8_t *conf, size_t conf_bytes)
{
    struct fake_world *world = calloc(1, sizeof *world);
    struct leat_raft_log log;
    struct leat_error error;
    bool is_new;
    assert_non_null(world);
    fake_world_init(world, 1);
    assert_int_equal(leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error), LEAT_OK);
    assert_int_equal(leat_raft_log_form(&log, NULL, 0, &error), LEAT_OK);
    assert_int_equal(leat_raft_log_vote(&log, 9, 0), LEAT_OK);
    leat_raft_log_close(&log);
    assert_int_equal(leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error), LEAT_OK);
    struct leat_raft_snapshot snapshot = {.index = 64, .term = term, .conf_index = 1};
    snapshot.conf = leat_mem_calloc(LEAT_MEM_COORDINATOR, conf_bytes + 1, 1);
    snapshot.data = leat_mem_calloc(LEAT_MEM_COORDINATOR, 8, 1);
    assert_true(snapshot.conf && snapshot.data);
    memcpy(snapshot.conf, conf, conf_bytes);
    snapshot.conf_bytes = conf_bytes;
    snapshot.data_bytes = 8;
    log.on_snapshot = on_saved;
    leat_raft_log_snapshot_save(&log, &snapshot);
    for (int i = 0; i < 100 && log.saving; i++)
        (void)fake_world_turn(world);
    leat_raft_log_close(&log);
    leat_err rc = leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error);
    assert_true(rc == LEAT_OK || strstr(error.text, "raft/snapshot-") != NULL);
    if (rc == LEAT_OK) leat_raft_log_close(&log);
    fake_world_fini(world);
    free(world);
    return rc;
}

static void files_snapshot_that_cannot_be_keeps_the_voter_out(void **state)
{
    (void)state;
    uint8_t conf[CONF_BYTES_MAX];
    size_t count = good_conf(conf);
    assert_int_equal(snapshot_start(9, conf, count), LEAT_OK);
    assert_int_equal(snapshot_start(10, conf, count), LEAT_E_DAMAGED);
    assert_int_equal(snapshot_start(0, conf, count), LEAT_E_DAMAGED);
    assert_int_equal(snapshot_start(9, conf, count - 1), LEAT_E_DAMAGED);
    assert_int_equal(snapshot_start(9, conf, 0), LEAT_E_DAMAGED);
}

/* Both blocks of raft/vote say it, and their checksums are right. */
static void files_vote_of_numbers_that_cannot_be_is_damaged(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct fake_world *world = calloc(1, sizeof *world);
        struct leat_raft_log log;
        struct leat_error error;
        bool is_new;
        assert_non_null(world);
        fake_world_init(world, 1);
        assert_int_equal(leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error), LEAT_OK);
        assert_int_equal(leat_raft_log_form(&log, NULL, 0, &error), LEAT_OK);
        if (i == 1) log.vote.first_segment = 0;
        if (i == 2) log.vote.first_segment = UINT64_MAX;
        if (i == 3) log.vote.durable_segment = UINT64_MAX;
        if (i == 4) log.vote.term = UINT64_MAX;
        if (i == 5) log.vote.sequence = UINT64_MAX - 1;
        assert_int_equal(leat_raft_vote_write(&log), LEAT_OK);
        log.failed = LEAT_E_DISK; /* it notes nothing more */
        leat_raft_log_close(&log);
        leat_err rc = leat_raft_log_open(&log, &world->disk, 65536, &is_new, &error);
        assert_int_equal(rc, i == 0 ? LEAT_OK : LEAT_E_DAMAGED);
        if (rc == LEAT_OK) leat_raft_log_close(&log);
        fake_world_fini(world);
        free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_configuration_that_libraft_cannot_read_does_not_pass),
        cmocka_unit_test(files_configuration_of_too_many_servers_does_not_pass),
        cmocka_unit_test(files_message_with_a_configuration_that_is_none_is_malformed),
        cmocka_unit_test(files_entry_that_raft_cannot_have_given_keeps_the_voter_out),
        cmocka_unit_test(files_that_a_killed_voter_left_are_synced_at_the_start),
        cmocka_unit_test(files_round_in_front_of_a_right_one_is_damaged),
        cmocka_unit_test(files_snapshot_that_cannot_be_keeps_the_voter_out),
        cmocka_unit_test(files_vote_of_numbers_that_cannot_be_is_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
