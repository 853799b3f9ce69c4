/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that form.c calls, except links: raft, voters, the coordinator; and a disk whose calls are recorded.
 * This node is "me" at "b:1"; n0 to n3 are at "a:1", "c:1", "d:1" and "e:1" and say the ids 10 to 13. */
#ifndef LEAT_TESTS_COORDINATOR_FORM_RIG_H
#define LEAT_TESTS_COORDINATOR_FORM_RIG_H

#include "tests/coordinator/solo_rig.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "tests/coordinator/fake.h"
#include "tests/coordinator/journal.h"

static struct fake_world world;
static struct journal journal;
static leat_err drive_form_rc, vote_start_rc, log_form_rc;
static bool unreached[PEERS];
static const char *const addresses[PEERS] = {"a:1", "c:1", "d:1", "e:1"};
static const char *voters[LEAT_VOTERS_MAX];

leat_err leat_raft_io(const struct leat_disk *disk, enum leat_disk_kind kind,
                      struct leat_file *file, uint64_t offset, void *buffer, size_t bytes,
                      size_t *out_done)
{
    struct leat_disk_io io = {
        .kind = kind, .file = file, .offset = offset, .buffer = buffer, .bytes = bytes};
    leat_err rc = disk->run(disk->ctx, &io);
    if (out_done) *out_done = io.done_bytes;
    return rc;
}
void co_voter_read(const char *text, struct leat_machine_voter *out)
{
    memset(out, 0, sizeof *out);
    (void)sscanf(text, "%127s %255s", out->address, out->name);
}
void co_voter_write(char out[CO_VOTER_BYTES_MAX + 1], const char *address, const char *name)
{
    snprintf(out, CO_VOTER_BYTES_MAX + 1, "%s %s", address, name);
}
const char *co_own_name(const struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return "me";
}
const struct co_peer *co_peer_reached(const struct leat_coordinator *asked, const char *address)
{
    assert_ptr_equal(asked, coordinator);
    for (unsigned i = 0; i < PEERS; i++)
        if (strcmp(addresses[i], address) == 0) return unreached[i] ? NULL : &peers[i].peer;
    return NULL;
}
void co_form_command(struct leat_msg_writer *writer, const uint8_t cluster_id[16])
{
    leat_msg_write_array(writer, 1);
    leat_msg_write_bin(writer, cluster_id, 16);
}
void co_identity_update(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    trace("identity\n");
}
void co_peers_want(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    trace("peers\n");
}
void co_requests_fail(struct leat_coordinator *asked, leat_err rc, const char *why)
{
    assert_ptr_equal(asked, coordinator);
    trace("requests fail %s: %s\n", leat_err_name(rc), why);
}
void co_state_tell(struct leat_coordinator *asked, bool always)
{
    assert_ptr_equal(asked, coordinator);
    trace("state told %d\n", always);
}
leat_err co_vote_start(struct leat_coordinator *asked, struct leat_error *error)
{
    assert_ptr_equal(asked, coordinator);
    trace("vote\n");
    asked->votes = vote_start_rc == LEAT_OK;
    return vote_start_rc ? leat_error_set(error, vote_start_rc, "no start") : LEAT_OK;
}
void leat_raft_drive_id_set(struct leat_raft_drive *drive, uint64_t id)
{
    assert_ptr_equal(drive, &coordinator->drive);
    trace("id %llu\n", (unsigned long long)id);
}
leat_err leat_raft_drive_form(struct leat_raft_drive *drive,
                              const struct raft_configuration *configuration, const void *command,
                              size_t command_bytes, struct leat_error *error)
{
    assert_ptr_equal(drive, &coordinator->drive);
    trace("form");
    control_trace(command, command_bytes);
    for (unsigned i = 0; i < configuration->n; i++)
        trace(", %llu %s %d", configuration->servers[i].id, configuration->servers[i].address,
              configuration->servers[i].role);
    trace("\n");
    return drive_form_rc ? leat_error_set(error, drive_form_rc, "no form") : LEAT_OK;
}
leat_err leat_raft_log_form(struct leat_raft_log *log, const struct leat_raft_entry *entries,
                            size_t count, struct leat_error *error)
{
    assert_ptr_equal(log, &coordinator->drive.log);
    assert_null(entries);
    trace("log of %zu\n", count);
    return log_form_rc ? leat_error_set(error, log_form_rc, "no log") : LEAT_OK;
}

static inline int begin(void **state)
{
    solo_begin(state);
    fake_world_init(&world, 1);
    journal_init(&journal, &world.disk);
    solo_env.disk = &journal.disk;
    drive_form_rc = vote_start_rc = log_form_rc = LEAT_OK;
    memset(unreached, 0, sizeof unreached);
    coordinator->options.node_address = "b:1";
    coordinator->options.node_name = "me";
    coordinator->options.voters = voters;
    coordinator->options.voter_count = 3;
    voters[0] = "b:1";
    voters[1] = "d:1";
    voters[2] = "c:1";
    coordinator->forming = LEAT_VOTER_EMPTY;
    coordinator->voter_id = 7;
    for (unsigned i = 0; i < PEERS; i++)
        peers[i].peer.state.role = LEAT_VOTER_EMPTY;
    return 0;
}
static inline int finish(void **state)
{
    assert_int_equal(journal.files_open, 0);
    fake_world_fini(&world);
    leat_mem_free(coordinator->form_body);
    return solo_finish(state);
}
#define FORM_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

/* The disk's calls since the last time. */
static inline void disk_trace(void)
{
    trace("disk: %s\n", journal.text);
    journal_clear(&journal);
}
#define SAVED(name, bytes)                                                                         \
    "create " name ".new, truncate " name ".new 0, allocate " name ".new " bytes ", write " name   \
    ".new 0+" bytes ", sync " name ".new, close " name ".new, rename " name ".new " name           \
    ", sync raft/, sync ./"

/* A body of FORM; ids and "address name" by turns. */
static uint8_t body[4096 + 1];
static inline uint32_t body_make(const uint8_t *id, size_t id_bytes, uint32_t count,
                                 const uint64_t *ids, const char *const *texts)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_bin(&writer, id, id_bytes);
    leat_msg_write_array(&writer, count);
    for (uint32_t i = 0; i < count; i++) {
        leat_msg_write_array(&writer, 2);
        leat_msg_write_u64(&writer, ids[i]);
        leat_msg_write_string(&writer, texts[i], strlen(texts[i]));
    }
    assert_false(writer.overflow);
    return writer.used;
}
static const uint8_t cluster[16] = "cluster of a tes";
static inline uint32_t body_of_two(void)
{
    static const char *const texts[] = {"a:1 n0", "b:1 me"};
    static const uint64_t ids[] = {10, 7};
    return body_make(cluster, 16, 2, ids, texts);
}
/* A file as it would have been written. */
static inline uint8_t *file_put(const char *path, uint32_t count, size_t bytes)
{
    struct leat_file *file;
    const struct leat_disk *disk = &world.disk;
    static uint8_t whole[8192];
    assert_true(bytes <= sizeof whole && count + 16 <= sizeof whole);
    leat_put_le32(whole, 0x4d46524c);
    leat_put_le32(whole + 8, count);
    leat_put_le32(whole + 12, 1);
    memcpy(whole + 16, body, sizeof body);
    leat_put_le32(whole + 4, leat_crc32c(0, whole + 8, 8 + (size_t)count));
    assert_int_equal(disk->make_dir(disk->ctx, "raft"), LEAT_OK);
    assert_int_equal(disk->open(disk->ctx, path, LEAT_OPEN_CREATE, &file, NULL), LEAT_OK);
    assert_int_equal(disk->truncate(disk->ctx, file, 0), LEAT_OK);
    assert_int_equal(leat_raft_io(disk, LEAT_DISK_WRITE, file, 0, whole, bytes, NULL), LEAT_OK);
    disk->close(disk->ctx, file);
    return fake_world_file(&world, path)->now;
}

#endif
