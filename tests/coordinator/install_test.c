/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's snapshots on their way to a voter and from one, chunk by chunk, with links and raft played by the test. */
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/solo_rig.h"

/* ---- in the place of the others ---- */

static const char *offence;
static leat_err restore_rc;
static unsigned machines;

struct co_peer *co_peer_of_voter(struct leat_coordinator *asked, uint64_t id)
{
    assert_ptr_equal(asked, coordinator);
    return id >= 10 && id < 10 + PEERS ? &peers[id - 10].peer : NULL;
}
static void snapshot_trace(const struct raft_message *message)
{
    const struct raft_install_snapshot *it = &message->install_snapshot;
    trace(" type %d of %llu at %s: %u %llu %llu %llu %llu", message->type, message->server_id,
          message->server_address, it->version, it->term, it->last_index, it->last_term,
          it->conf_index);
    for (unsigned i = 0; i < it->conf.n; i++)
        trace(" (%llu %s %d)", it->conf.servers[i].id, it->conf.servers[i].address,
              it->conf.servers[i].role);
    bytes_trace(it->data.base, it->data.len);
    trace("\n");
}
static void snapshot_free(struct raft_message *message)
{
    raft_configuration_close(&message->install_snapshot.conf);
    raft_free(message->install_snapshot.data.base);
}
const char *co_message_offence(const struct leat_coordinator *asked,
                               const struct raft_message *message)
{
    assert_ptr_equal(asked, coordinator);
    assert_int_equal(message->type, RAFT_INSTALL_SNAPSHOT);
    return offence;
}
void co_complain(struct leat_coordinator *asked, const struct co_peer *peer, const char *what)
{
    assert_ptr_equal(asked, coordinator);
    trace("complain of %s: %s\n", name_of(peer), what);
}
void leat_raft_message_drop(struct raft_message *message)
{
    trace("drop");
    snapshot_trace(message);
    snapshot_free(message);
}
void leat_raft_drive_receive(struct leat_raft_drive *drive, struct raft_message *message)
{
    assert_ptr_equal(drive, &coordinator->drive);
    trace("raft");
    snapshot_trace(message);
    snapshot_free(message);
}
void leat_machine_init(struct leat_machine *machine, uint32_t cores)
{
    (void)machine;
    assert_int_equal(cores, 3);
    machines++;
}
void leat_machine_fini(struct leat_machine *machine)
{
    (void)machine;
    machines--;
}
leat_err leat_machine_restore(struct leat_machine *machine, const uint8_t *bytes, size_t count)
{
    (void)machine;
    trace("restore");
    bytes_trace(bytes, count);
    trace("\n");
    return restore_rc;
}

/* ---- out ---- */

static uint8_t data[3 * CO_CHUNK_BYTES];
static struct raft_message message;

static int begin(void **state)
{
    solo_begin(state);
    coordinator->votes = true;
    coordinator->options.cores = 3;
    offence = NULL;
    restore_rc = LEAT_OK;
    machines = 0;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i % 249);
    message = (struct raft_message){.type = RAFT_INSTALL_SNAPSHOT, .server_id = 11};
    message.install_snapshot = (struct raft_install_snapshot){
        .version = 2, .term = 6, .last_index = 40, .last_term = 5, .conf_index = 30};
    raft_configuration_init(&message.install_snapshot.conf);
    assert_int_equal(raft_configuration_add(&message.install_snapshot.conf, 1, "a", RAFT_VOTER), 0);
    message.install_snapshot.data = (struct raft_buffer){.base = data, .len = 5};
    return 0;
}
static int finish(void **state)
{
    co_install_fini(coordinator);
    raft_configuration_close(&message.install_snapshot.conf);
    assert_int_equal(machines, 0);
    return solo_finish(state);
}
#define INSTALL_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

/* As libraft encodes it, in words of 8 bytes. */
#define CONF "010100000000000000010000000000000061000100000000"
#define HEAD "call n1 kind 274 within 5000000 [10 1 11 2 6 40 5 30 <" CONF "> "

static void to_voter_of(uint64_t id)
{
    message.server_id = id;
    co_install_send(coordinator, &message);
}
static unsigned sends_used(void)
{
    unsigned used = 0;
    for (unsigned i = 0; i < LEAT_VOTERS_MAX; i++)
        used += coordinator->sends[i].id != 0;
    return used;
}

static void small_snapshot_is_one_chunk(void **state)
{
    (void)state;
    to_voter_of(11);
    TRACE_IS(HEAD "5 0 +5:0001020304\n");
    to_voter_of(11); /* on its way */
    TRACE_IS("");
    call_ends(LEAT_OK);
    assert_int_equal(sends_used(), 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    TRACE_IS("");
}

static void chunks_follow_each_other(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        message.install_snapshot.data.len = 2 * CO_CHUNK_BYTES + more;
        to_voter_of(11);
        memset(data, 0xee, 10); /* raft may take its own back */
        for (unsigned i = 0; i < 2 + more; i++) {
            assert_int_equal(call_count, 1);
            const struct leat_iov *iov = &calls[0]->payload[0];
            assert_int_equal(iov->bytes, i < 2 ? CO_CHUNK_BYTES : 1);
            const size_t at = i * (size_t)CO_CHUNK_BYTES;
            assert_int_equal(((const uint8_t *)iov->base)[0], at % 249);
            assert_int_equal(((const uint8_t *)iov->base)[iov->bytes - 1],
                             (at + iov->bytes - 1) % 249);
            assert_int_equal(coordinator->sends[0].offset, at);
            call_ends(LEAT_OK);
        }
        assert_int_equal(call_count, 0);
        assert_int_equal(sends_used(), 0);
        for (size_t i = 0; i < 10; i++)
            data[i] = (uint8_t)i;
    }
    trace_begin();
}

static void another_snapshot_takes_the_place_of_the_one_on_its_way(void **state)
{
    (void)state;
    to_voter_of(11);
    message.install_snapshot.last_index = 41;
    to_voter_of(11);
    message.install_snapshot.term = 7;
    to_voter_of(11);
    TRACE_IS(HEAD
             "5 0 +5:0001020304\n"
             "call n1 kind 274 within 5000000 [10 1 11 2 6 41 5 30 <" CONF "> 5 0 +5:0001020304\n"
             "call n1 kind 274 within 5000000 [10 1 11 2 7 41 5 30 <" CONF "> 5 0 +5:0001020304\n");
    assert_int_equal(sends_used(), 1);
}

static void chunk_that_fails_gives_the_snapshot_up(void **state)
{
    (void)state;
    const leat_err codes[] = {LEAT_E_CLOSED, LEAT_E_AGAIN, LEAT_E_TIMEOUT};
    message.install_snapshot.data.len = CO_CHUNK_BYTES + 5;
    for (unsigned c = 0; c < 3; c++) {
        to_voter_of(11);
        assert_int_equal(sends_used(), 1);
        call_ends(codes[c]);
        assert_int_equal(sends_used(), 0);
        assert_int_equal(call_count, 0);
    }
    /* At close, only the chunk's own bytes are given back. */
    to_voter_of(11);
    call_ends(LEAT_E_CANCELLED);
    assert_int_equal(sends_used(), 1);
    assert_int_equal(coordinator->sends[0].offset, 0);
    trace_begin();
}

/* An answer to a chunk that is not the one of now moves nothing on. */
static void answer_of_before_means_nothing(void **state)
{
    (void)state;
    message.install_snapshot.data.len = 2 * CO_CHUNK_BYTES + 5;
    to_voter_of(11);
    coordinator->sends[0].offset = CO_CHUNK_BYTES;
    trace_begin();
    call_ends(LEAT_E_CLOSED);
    assert_int_equal(sends_used(), 1);
    assert_int_equal(coordinator->sends[0].offset, CO_CHUNK_BYTES);
    coordinator->sends[0].offset = 0;
    message.install_snapshot.last_index++;
    to_voter_of(11);
    coordinator->sends[0].offset = CO_CHUNK_BYTES;
    trace_begin();
    call_ends(LEAT_OK);
    assert_int_equal(call_count, 0);
    assert_int_equal(coordinator->sends[0].offset, CO_CHUNK_BYTES);
    /* Nor one to somebody who is gone. */
    coordinator->sends[0].offset = 0;
    message.install_snapshot.last_index++;
    to_voter_of(11);
    co_install_peer_gone(coordinator, &peers[1].peer);
    trace_begin();
    call_ends(LEAT_OK);
    TRACE_IS("");
}

static void every_voter_has_a_place(void **state)
{
    (void)state;
    to_voter_of(9);
    TRACE_IS("");
    for (unsigned i = 0; i < LEAT_VOTERS_MAX; i++)
        coordinator->sends[i].id = 100 + i;
    to_voter_of(11);
    TRACE_IS("");
    coordinator->sends[LEAT_VOTERS_MAX - 1].id = 0;
    to_voter_of(11);
    assert_int_equal(coordinator->sends[LEAT_VOTERS_MAX - 1].id, 11);
    assert_ptr_equal(coordinator->sends[LEAT_VOTERS_MAX - 1].peer, &peers[1].peer);
    assert_int_equal(call_count, 1);
    trace_begin();
    coordinator->sends[LEAT_VOTERS_MAX - 2].id = 0;
    message.install_snapshot.data.len = 0;
    to_voter_of(12);
    TRACE_IS("");
}

static void sending_without_memory_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 4; n++) {
        leat_mem_fail_at(n);
        to_voter_of(11);
        assert_int_equal(sends_used(), 0);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
        TRACE_IS("");
    }
    leat_mem_fail_at(0);
    raft_fail_at = 1;
    to_voter_of(11);
    assert_int_equal(raft_fail_at, 0);
    assert_int_equal(sends_used(), 0);
    TRACE_IS("");
    link_rc = LEAT_E_CLOSED;
    to_voter_of(11);
    assert_int_equal(sends_used(), 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    TRACE_IS(HEAD "5 0 +5:0001020304 fails\n");
}

/* A configuration that no chunk could hold is not sent. */
static void configuration_has_to_fit(void **state)
{
    (void)state;
    char address[4000];
    for (unsigned more = 0; more < 2; more++) {
        struct raft_configuration *conf = &message.install_snapshot.conf;
        struct raft_buffer encoded;
        memset(address, 'a', sizeof address);
        address[3941 + more] = '\0';
        raft_configuration_close(conf);
        raft_configuration_init(conf);
        assert_int_equal(raft_configuration_add(conf, 1, address, RAFT_VOTER), 0);
        assert_int_equal(raft_configuration_encode(conf, &encoded), 0);
        assert_int_equal(encoded.len, 4096 - 128 - (more ? 0 : 8));
        raft_free(encoded.base);
        to_voter_of(11);
        assert_int_equal(call_count, !more);
        assert_int_equal(sends_used(), !more);
        if (call_count) call_ends(LEAT_OK);
        trace_begin();
    }
}

/* ---- in ---- */

static struct chunk_of_test {
    uint64_t from, to, version, term, last_index, last_term, conf_index, total, offset;
    const char *conf;
    size_t conf_bytes, cut;
} chunk;
static const char conf_bytes[] = "\x01\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"
                                 "a\0\x01";

static void chunk_comes_with(const void *payload, size_t bytes)
{
    uint8_t control[512];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 10);
    leat_msg_write_u64(&writer, chunk.from);
    leat_msg_write_u64(&writer, chunk.to);
    leat_msg_write_u64(&writer, chunk.version);
    leat_msg_write_u64(&writer, chunk.term);
    leat_msg_write_u64(&writer, chunk.last_index);
    leat_msg_write_u64(&writer, chunk.last_term);
    leat_msg_write_u64(&writer, chunk.conf_index);
    leat_msg_write_bin(&writer, chunk.conf, chunk.conf_bytes);
    leat_msg_write_u64(&writer, chunk.total);
    leat_msg_write_u64(&writer, chunk.offset);
    const struct leat_frame frame = {.control = control,
                                     .control_bytes = writer.used - (uint32_t)chunk.cut,
                                     .payload = payload,
                                     .payload_bytes = (uint32_t)bytes};
    co_install_take(coordinator, &peers[1].peer, &frame, &ticket);
}
static void chunk_comes(const char *text)
{
    chunk_comes_with(text, strlen(text));
}
static void chunk_begin(void)
{
    chunk = (struct chunk_of_test){.from = 11,
                                   .to = 1,
                                   .version = 2,
                                   .term = 6,
                                   .last_index = 40,
                                   .last_term = 5,
                                   .conf_index = 30,
                                   .conf = conf_bytes,
                                   .conf_bytes = sizeof conf_bytes - 1,
                                   .total = 5};
}
#define WHOLE " type 5 of 11 at h1:1: 2 6 40 5 30 (1 a 1) +5:6162636465\n"

static void chunks_become_a_message_of_rafts(void **state)
{
    (void)state;
    chunk_begin();
    chunk_comes("abc");
    TRACE_IS("answer [0\n");
    assert_int_equal(coordinator->receive.id, 11);
    chunk.offset = 3;
    chunk_comes("de");
    TRACE_IS("answer [0\nrestore +5:6162636465\nraft" WHOLE);
    assert_int_equal(coordinator->receive.id, 0);
    assert_null(coordinator->receive.bytes);
    chunk.version = UINT8_MAX;
    chunk.offset = 0;
    chunk_comes("abcde");
    TRACE_IS("answer [0\nrestore +5:6162636465\n"
             "raft type 5 of 11 at h1:1: 255 6 40 5 30 (1 a 1) +5:6162636465\n");
}

static void snapshot_that_does_no_good_does_not_come_to_raft(void **state)
{
    (void)state;
    chunk_begin();
    offence = "it lies";
    chunk_comes("abcde");
    TRACE_IS("answer [0\ncomplain of n1: it lies\ndrop" WHOLE);
    offence = NULL;
    restore_rc = LEAT_E_CORRUPT;
    chunk_comes("abcde");
    TRACE_IS("answer [0\nrestore +5:6162636465\n"
             "complain of n1: its snapshot does not decode: is this program older than that "
             "one?\ndrop" WHOLE);
    restore_rc = LEAT_OK;
    leat_mem_fail_at(2);
    chunk_comes("abcde");
    TRACE_IS("answer [0\ncomplain of n1: no memory to look at its snapshot\ndrop" WHOLE);
    raft_fail_at = 1;
    chunk_comes("abcde");
    raft_fail_at = 2;
    chunk_comes("abcde");
    assert_int_equal(raft_fail_at, 0);
    chunk.conf_bytes--;
    chunk_comes("abcde");
    chunk.conf = "\x01\0\0\0\0\0\0\0\0"; /* of nobody */
    chunk.conf_bytes = 9;
    chunk_comes("abcde");
    TRACE_IS("answer [0\nanswer [0\nanswer [0\nanswer [0\n");
    assert_int_equal(coordinator->receive.id, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
}

static void chunk_for_another_is_refused(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 13; c++) {
        const char *text = "abc";
        chunk_begin();
        coordinator->votes = c != 0;
        if (c == 1) chunk.to = 2;
        if (c == 2) chunk.from = 12;
        if (c == 3) peers[1].peer.state.voter_id = chunk.from = 0;
        if (c == 4) chunk.version = UINT8_MAX + 1;
        if (c == 5) chunk.total = 0;
        if (c == 6) chunk.total = (uint64_t)CO_SNAPSHOT_BYTES_MAX + 1;
        if (c == 7) chunk.offset = chunk.total;
        if (c == 8) text = "";
        if (c == 9) text = "abcdef";
        if (c == 10) chunk.cut = 1;
        if (c == 11) chunk.offset = 3;
        if (c == 12) chunk.offset = chunk.total + 1;
        chunk_comes(text);
        TRACE_IS("refuse INVALID: a snapshot that is not for this voter\n");
        assert_int_equal(coordinator->receive.id, 0);
        peers[1].peer.state.voter_id = 11;
    }
    chunk_begin();
    coordinator->votes = true;
    chunk.total = CO_SNAPSHOT_BYTES_MAX;
    chunk_comes("abc");
    TRACE_IS("answer [0\n");
}

static void chunk_that_is_not_the_next_is_refused(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 7; c++) {
        chunk_begin();
        chunk_comes("ab");
        trace_begin();
        chunk.offset = 2;
        if (c == 0) coordinator->receive.id = 12;
        if (c == 1) coordinator->receive.peer = &peers[2].peer;
        if (c == 2) chunk.offset = 1;
        if (c == 3) chunk.offset = 3;
        if (c == 4) chunk.total = 6;
        if (c == 5) chunk.last_index++;
        if (c == 6) chunk.term++;
        chunk_comes("c");
        TRACE_IS("refuse AGAIN: a chunk of a snapshot that was not begun here\n");
        assert_int_equal(coordinator->receive.offset, 2);
    }
    /* The first of another begins anew. */
    chunk_begin();
    chunk.last_index = 50;
    chunk.total = 4;
    chunk_comes("a");
    TRACE_IS("answer [0\n");
    assert_int_equal(coordinator->receive.offset, 1);
    assert_int_equal(coordinator->receive.total, 4);
    assert_int_equal(coordinator->receive.meta.last_index, 50);
    leat_mem_fail_at(1);
    chunk_comes("a");
    TRACE_IS("refuse NO_MEMORY: no memory for the snapshot\n");
    assert_int_equal(coordinator->receive.id, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
}

/* Memory doubles with what has come, and is never more than was announced. */
static void room_grows_with_what_comes(void **state)
{
    (void)state;
    const size_t part = CO_CHUNK_BYTES / 2;
    const struct {
        size_t have, more, total, bytes;
        bool grows;
    } cases[] = {
        {0, 10, 10, 10, true},
        {0, 10, 1 << 30, CO_CHUNK_BYTES, true},
        {0, 2 * part, 1 << 30, CO_CHUNK_BYTES, true},
        {0, 2 * part + 1, 1 << 30, 2 * CO_CHUNK_BYTES, true},
        {part, part, 1 << 30, CO_CHUNK_BYTES, false},
        {part, part + 1, 1 << 30, 2 * CO_CHUNK_BYTES, true},
        {2 * part, 1, 1 << 30, 2 * CO_CHUNK_BYTES, true},
        {2 * part + 1, 1, 1 << 30, 2 * CO_CHUNK_BYTES, false},
        {4 * part, 1, 4 * part + 7, 4 * part + 7, true},
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        const size_t before = leat_mem_bytes(LEAT_MEM_COORDINATOR);
        size_t room = CO_CHUNK_BYTES, have = cases[c].have;
        while (room < have)
            room *= 2;
        uint8_t *bytes = have ? leat_mem_calloc(LEAT_MEM_COORDINATOR, room, 1) : NULL;
        const struct leat_frame frame = {.payload = data + 1,
                                         .payload_bytes = (uint32_t)cases[c].more};
        if (have) memset(bytes, 7, have);
        leat_mem_fail_at(1);
        const leat_err rc = co_chunk_add(&bytes, &have, cases[c].total, &frame);
        leat_mem_fail_at(0);
        assert_int_equal(rc, cases[c].grows ? LEAT_E_NO_MEMORY : LEAT_OK);
        assert_int_equal(have, cases[c].have + (cases[c].grows ? 0 : cases[c].more));
        have = cases[c].have;
        assert_int_equal(co_chunk_add(&bytes, &have, cases[c].total, &frame), LEAT_OK);
        assert_int_equal(have, cases[c].have + cases[c].more);
        assert_memory_equal(bytes + cases[c].have, data + 1, cases[c].more);
        if (cases[c].have) assert_int_equal(bytes[cases[c].have - 1], 7);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR) - before, cases[c].bytes);
        leat_mem_free(bytes);
    }
}

static void peer_that_is_gone_takes_its_snapshots_with_it(void **state)
{
    (void)state;
    chunk_begin();
    chunk_comes("ab");
    to_voter_of(11);
    to_voter_of(12);
    trace_begin();
    co_install_peer_gone(coordinator, &peers[3].peer);
    assert_int_equal(sends_used(), 2);
    assert_int_equal(coordinator->receive.id, 11);
    co_install_peer_gone(coordinator, &peers[2].peer);
    assert_int_equal(sends_used(), 1);
    assert_int_equal(coordinator->receive.id, 11);
    co_install_peer_gone(coordinator, &peers[1].peer);
    assert_int_equal(sends_used(), 0);
    assert_int_equal(coordinator->receive.id, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        INSTALL_TEST(small_snapshot_is_one_chunk),
        INSTALL_TEST(chunks_follow_each_other),
        INSTALL_TEST(another_snapshot_takes_the_place_of_the_one_on_its_way),
        INSTALL_TEST(chunk_that_fails_gives_the_snapshot_up),
        INSTALL_TEST(answer_of_before_means_nothing),
        INSTALL_TEST(every_voter_has_a_place),
        INSTALL_TEST(sending_without_memory_leaves_nothing),
        INSTALL_TEST(configuration_has_to_fit),
        INSTALL_TEST(chunks_become_a_message_of_rafts),
        INSTALL_TEST(snapshot_that_does_no_good_does_not_come_to_raft),
        INSTALL_TEST(chunk_for_another_is_refused),
        INSTALL_TEST(chunk_that_is_not_the_next_is_refused),
        INSTALL_TEST(room_grows_with_what_comes),
        INSTALL_TEST(peer_that_is_gone_takes_its_snapshots_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
