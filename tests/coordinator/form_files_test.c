/* SPDX-License-Identifier: Apache-2.0 */
/* The files raft/voter and raft/form, in which a voter keeps what it knows of itself: a crash leaves the old file or
 * the new file, and a damaged file is refused. */
#include "coordinator/membership/forming.h"
#include "coordinator/membership/voters.h"
#include "tests/coordinator/form_rig.h"

/* ---- raft/voter ---- */

static leat_err load(void)
{
    struct leat_error error = {.code = LEAT_OK};
    leat_err rc = co_voter_load(coordinator, &error);
    trace("%s%s%s\n", leat_err_name(rc), rc ? ": " : "", rc ? error.text : "");
    return rc;
}

static void voter_is_written_and_read(void **state)
{
    (void)state;
    coordinator->voter_id = 1000;
    assert_int_equal(world.disk.make_dir(world.disk.ctx, "raft"), LEAT_OK);
    assert_int_equal(co_voter_save(coordinator, cluster), LEAT_OK);
    disk_trace();
    TRACE_IS("disk: " SAVED("voter", "38") "\n");
    coordinator->voter_id = 2;
    load();
    disk_trace();
    TRACE_IS("OK\ndisk: make raft/, list raft/, open voter, read voter 0+4112, close voter\n");
    assert_int_equal(coordinator->voter_id, 1000);
    assert_memory_equal(coordinator->cluster_id, cluster, 16);
    const uint8_t *bytes = fake_world_file(&world, "raft/voter")->now;
    assert_memory_equal(bytes, "LRFM", 4);
    assert_int_equal(leat_get_le32(bytes + 4), leat_crc32c(0, bytes + 8, 30));
    assert_int_equal(leat_get_le32(bytes + 8), 22);
    assert_int_equal(leat_get_le32(bytes + 12), 1);
}

static void whoever_began_alone_is_voter_one(void **state)
{
    (void)state;
    coordinator->voter_id = 9;
    load();
    disk_trace();
    TRACE_IS("OK\ndisk: make raft/, list raft/\n");
    assert_int_equal(coordinator->voter_id, 1);
    assert_int_equal(coordinator->cluster_id[0], 0);
    file_put("raft/voters", 10, 26); /* another name */
    load();
    disk_trace();
    TRACE_IS("OK\ndisk: make raft/, list raft/\n");
}

/* The disk fails at each of the steps: the caller gets the error, and no file is left open. */
static void each_step_may_fail(void **state)
{
    (void)state;
    assert_int_equal(world.disk.make_dir(world.disk.ctx, "raft"), LEAT_OK);
    for (unsigned n = 1; n <= 9; n++) {
        journal_fail(&journal, n, LEAT_E_DISK);
        assert_int_equal(co_voter_save(coordinator, cluster), n <= 8 ? LEAT_E_DISK : LEAT_OK);
        /* Nothing follows what fails, but closing. */
        assert_int_equal(journal.calls, n <= 8 ? n : 8);
        assert_int_equal(journal.files_open, 0);
    }
    for (unsigned n = 1; n <= 5; n++) {
        journal_fail(&journal, n, LEAT_E_DISK);
        assert_int_equal(load(), n <= 4 ? LEAT_E_DISK : LEAT_OK);
        assert_int_equal(journal.calls, n <= 4 ? n : 4);
        assert_int_equal(journal.files_open, 0);
    }
    TRACE_IS("DISK: \nDISK: \nDISK: the disk failed a read, write or flush\n"
             "DISK: raft/voter can't be read\nOK\n");
}

static uint32_t voter_body(uint64_t id, size_t id_bytes)
{
    struct leat_msg_writer writer;
    uint8_t longer[sizeof cluster + 1] = {0};
    memcpy(longer, cluster, sizeof cluster);
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, id);
    leat_msg_write_bin(&writer, longer, id_bytes);
    return writer.used;
}

#define DAMAGED                                                                                    \
    "DAMAGED: raft/voter is damaged. This node may not vote; restore the file from a copy\n"

static void damage_is_named(void **state)
{
    (void)state;
    uint32_t count = voter_body(5, 16);
    for (unsigned i = 0; i < count + 16; i++) {
        file_put("raft/voter", count, count + 16)[i] ^= 1;
        load();
        TRACE_IS(DAMAGED);
    }
    /* Of what is behind it nothing is said, but no byte may lack. */
    file_put("raft/voter", count, count + 16 + 5);
    load();
    TRACE_IS("OK\n");
    for (unsigned bytes = 0; bytes < count + 16; bytes++) {
        file_put("raft/voter", count, bytes);
        load();
        TRACE_IS(DAMAGED);
    }
    /* Each by itself, with a sum that is right. */
    file_put("raft/voter", 0, count + 16);
    load();
    uint8_t *bytes = file_put("raft/voter", count, count + 16);
    leat_put_le32(bytes + 12, 2);
    leat_put_le32(bytes + 4, leat_crc32c(0, bytes + 8, 8 + (size_t)count));
    load();
    TRACE_IS(DAMAGED DAMAGED);
    memset(body, 0, sizeof body);
    file_put("raft/voter", 4097, 8192);
    load();
    TRACE_IS(DAMAGED);
    file_put("raft/voter", 4096, 8192);
    load();
    TRACE_IS("DAMAGED: raft/voter names no voter\n");
    /* A length with which the end lies before the beginning, and a sum that is right for it. */
    count = voter_body(5, 16);
    bytes = file_put("raft/voter", count, count + 16);
    leat_put_le32(bytes + 8, UINT32_MAX - 7);
    leat_put_le32(bytes + 4, leat_crc32c(0, bytes + 8, 0));
    load();
    TRACE_IS(DAMAGED);
}

static void voter_has_an_id_and_a_cluster(void **state)
{
    (void)state;
    uint32_t count = voter_body(0, 16);
    file_put("raft/voter", count, count + 16);
    load();
    count = voter_body(5, 15);
    file_put("raft/voter", count, count + 16);
    load();
    count = voter_body(5, 17);
    file_put("raft/voter", count, count + 16);
    load();
    count = voter_body(5, 16);
    file_put("raft/voter", count - 1, count + 16);
    load();
    TRACE_IS("DAMAGED: raft/voter names no voter\nDAMAGED: raft/voter names no voter\n"
             "DAMAGED: raft/voter names no voter\nDAMAGED: raft/voter names no voter\n");
}

/* ---- at a start ---- */

static leat_err form_open(void)
{
    struct leat_error error = {.code = LEAT_OK};
    leat_err rc = co_form_open(coordinator, true, &error);
    trace("%s%s%s\n", leat_err_name(rc), rc ? ": " : "", rc ? error.text : "");
    return rc;
}

static void voter_that_was_prepared_is_so_again(void **state)
{
    (void)state;
    const uint32_t count = body_of_two();
    file_put("raft/form", count, count + 16);
    memset(coordinator->cluster_id, 1,
           16); /* raft/voter names the cluster that it was prepared for */
    form_open();
    TRACE_IS("OK\n");
    assert_int_equal(coordinator->forming, LEAT_VOTER_PREPARED);
    assert_int_equal(coordinator->cluster_id[0] + coordinator->cluster_id[15], 0);
    assert_int_equal(coordinator->voter_id, 7);
    assert_int_equal(coordinator->form_bytes, count);
    assert_memory_equal(coordinator->form_body, body, count);
    leat_mem_free(coordinator->form_body);
    coordinator->form_body = NULL;
    leat_mem_fail_at(1);
    coordinator->forming = LEAT_VOTER_EMPTY;
    form_open();
    TRACE_IS("NO_MEMORY: \n");
    assert_int_equal(coordinator->forming, LEAT_VOTER_EMPTY);
    file_put("raft/form", count, count + 16)[20] ^= 1;
    form_open();
    TRACE_IS("DAMAGED: raft/form is damaged. This node may not vote; restore the file from a "
             "copy\n");
}

static void voter_to_be_begins_empty_under_a_new_id(void **state)
{
    (void)state;
    memset(coordinator->cluster_id, 1, 16);
    form_open();
    assert_int_equal(coordinator->voter_id, 1000 | 1024);
    assert_int_equal(coordinator->forming, LEAT_VOTER_EMPTY);
    assert_int_equal(coordinator->cluster_id[0] + coordinator->cluster_id[15], 0);
    assert_false(coordinator->forgot);
    TRACE_IS("OK\n");
    /* Prepared under another id, or in no list any more. */
    const uint32_t count = body_of_two();
    file_put("raft/form", count, count + 16);
    form_open();
    assert_int_equal(coordinator->forming, LEAT_VOTER_EMPTY);
    assert_int_equal(coordinator->voter_id, 1001 | 1024);
    coordinator->voter_id = 7;
    voters[0] = "x:1";
    form_open();
    assert_int_equal(coordinator->forming, LEAT_VOTER_LEARNER);
    voters[2] = "b:1";
    memset(body, 0xff, sizeof body); /* none that can be read */
    file_put("raft/form", 30, 46);
    coordinator->voter_id = 7;
    form_open();
    assert_int_equal(coordinator->forming, LEAT_VOTER_EMPTY);
    assert_null(coordinator->form_body);
    TRACE_IS("OK\nOK\nOK\n");
}

#define FORGOT(name) "this coordinator has lost its data and does not vote: leat node replace " name

static void node_of_a_cluster_without_its_log_has_forgotten(void **state)
{
    (void)state;
    coordinator->options.cluster_id[15] = 1;
    voters[0] = "x:1";
    form_open();
    assert_false(coordinator->forgot);
    TRACE_IS("OK\n");
    voters[0] = "b:1";
    form_open();
    assert_true(coordinator->forgot);
    assert_string_equal(coordinator->why, FORGOT("me"));
    TRACE_IS("node log 0: coordinator: " FORGOT("me") "\nOK\n");
    form_open(); /* said once */
    TRACE_IS("OK\n");
    coordinator->forgot = false;
    coordinator->options.node_name = NULL;
    form_open();
    TRACE_IS("node log 0: coordinator: " FORGOT("") "\nOK\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORM_TEST(voter_is_written_and_read),
        FORM_TEST(whoever_began_alone_is_voter_one),
        FORM_TEST(each_step_may_fail),
        FORM_TEST(damage_is_named),
        FORM_TEST(voter_has_an_id_and_a_cluster),
        FORM_TEST(voter_that_was_prepared_is_so_again),
        FORM_TEST(voter_to_be_begins_empty_under_a_new_id),
        FORM_TEST(node_of_a_cluster_without_its_log_has_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
