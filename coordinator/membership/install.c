/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's snapshots on their way to a voter that lags: chunks, each answered before the next. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"

/* INSTALL [from, to, version, term, last index, last term, conf index, conf bin, total, offset]
 * + the chunk */

enum { CONTROL_BYTES_MAX = 4096 };

struct chunk {
    struct leat_link_call call;
    struct leat_iov iov;
    struct leat_coordinator *coordinator;
    uint64_t id;
    size_t offset, bytes;
    uint8_t control[CONTROL_BYTES_MAX];
};

static void install_drop(struct co_install *install)
{
    leat_mem_free(install->bytes);
    leat_mem_free(install->conf);
    memset(install, 0, sizeof *install);
}

static void chunk_send(struct leat_coordinator *coordinator, struct co_install *install);

static struct co_install *send_of(struct leat_coordinator *coordinator, uint64_t id)
{
    for (unsigned i = 0; i < LEAT_VOTERS_MAX; i++)
        if (coordinator->sends[i].id == id) return &coordinator->sends[i];
    return NULL;
}

/* SUBTLE: the chunk's bytes are a copy of their own. The snapshot itself may be dropped (its voter
 * is lost, this node no longer leads) while the network still holds the chunk. */
static void chunk_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                       const struct leat_error *error)
{
    struct chunk *chunk = call->owner;
    struct leat_coordinator *coordinator = chunk->coordinator;
    struct co_install *install = rc == LEAT_E_CANCELLED ? NULL : send_of(coordinator, chunk->id);
    (void)answer;
    (void)error;
    bool next = install && install->offset == chunk->offset && rc == LEAT_OK;
    if (install && install->offset == chunk->offset) {
        install->offset += chunk->bytes;
        if (!next || install->offset >= install->total) install_drop(install);
    }
    leat_mem_free((void *)(uintptr_t)chunk->iov.base);
    leat_mem_free(chunk);
    if (next && install->id != 0) chunk_send(coordinator, install);
}

static void chunk_send(struct leat_coordinator *coordinator, struct co_install *install)
{
    struct chunk *chunk = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *chunk);
    size_t bytes = install->total - install->offset;
    if (bytes > CO_CHUNK_BYTES) bytes = CO_CHUNK_BYTES;
    uint8_t *copy = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, bytes + 1);
    leat_err rc = LEAT_E_NO_MEMORY;
    if (chunk && copy) {
        memcpy(copy, install->bytes + install->offset, bytes);
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, chunk->control, sizeof chunk->control);
        struct co_install_said said = {.from = coordinator->voter_id,
                                       .to = install->id,
                                       .version = install->meta.version,
                                       .term = install->meta.term,
                                       .last_index = install->meta.last_index,
                                       .last_term = install->meta.last_term,
                                       .conf_index = install->meta.conf_index,
                                       .conf = {install->conf, (uint32_t)install->conf_bytes},
                                       .total = install->total,
                                       .offset = install->offset};
        co_install_said_write(&writer, &said);
        LEAT_ASSERT(!writer.overflow);
        chunk->coordinator = coordinator;
        chunk->id = install->id;
        chunk->offset = install->offset;
        chunk->bytes = bytes;
        chunk->iov = (struct leat_iov){copy, bytes};
        chunk->call = (struct leat_link_call){.kind = CO_KIND_INSTALL,
                                              .control = chunk->control,
                                              .control_bytes = writer.used,
                                              .payload = &chunk->iov,
                                              .payload_count = 1,
                                              .timeout_us = CO_CALL_US,
                                              .on_done = chunk_done,
                                              .owner = chunk};
        rc = leat_link_call(install->peer->link, &chunk->call);
    }
    if (rc == LEAT_OK) return;
    leat_mem_free(chunk);
    leat_mem_free(copy);
    install_drop(install); /* raft asks again */
}

void co_install_send(struct leat_coordinator *coordinator, const struct raft_message *message)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct raft_install_snapshot *from = &message->install_snapshot;
    struct co_peer *peer = co_peer_of_voter(coordinator, message->server_id);
    struct co_install *install = send_of(coordinator, message->server_id);
    if (!peer) return;
    if (install) {
        if (install->meta.last_index == from->last_index && install->meta.term == from->term)
            return; /* on its way */
        install_drop(install);
    }
    install = send_of(coordinator, 0);
    struct raft_buffer conf;
    if (!install || from->data.len == 0 || raft_configuration_encode(&from->conf, &conf) != 0)
        return;
    install->bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, from->data.len, 1);
    install->conf = leat_mem_calloc(LEAT_MEM_COORDINATOR, conf.len + 1, 1);
    if (install->bytes && install->conf && conf.len < CONTROL_BYTES_MAX - 128) {
        memcpy(install->bytes, from->data.base, from->data.len);
        memcpy(install->conf, conf.base, conf.len);
        install->conf_bytes = conf.len;
        install->id = message->server_id;
        install->peer = peer;
        install->total = from->data.len;
        install->offset = 0;
        install->meta = *from;
        chunk_send(coordinator, install);
    } else {
        install_drop(install);
    }
    raft_free(conf.base);
}

/* ---- in ---- */

static bool chunk_read(const struct leat_frame *frame, struct co_install *out, uint64_t *out_from,
                       uint64_t *out_to, struct leat_msg_bin *out_conf)
{
    struct co_install_said said = {0};
    leat_err rc = co_install_said_decode(frame->control, frame->control_bytes, &said);
    memset(out, 0, sizeof *out);
    *out_from = said.from;
    *out_to = said.to;
    *out_conf = said.conf;
    out->meta.version = said.version;
    out->meta.term = said.term;
    out->meta.last_index = said.last_index;
    out->meta.last_term = said.last_term;
    out->meta.conf_index = said.conf_index;
    out->total = said.total;
    out->offset = said.offset;
    return rc == LEAT_OK && *out_from != 0 && out->total > 0 &&
           out->total <= CO_SNAPSHOT_BYTES_MAX && out->offset < out->total &&
           frame->payload_bytes > 0 && frame->payload_bytes <= out->total - out->offset;
}

/* SUBTLE: a stored snapshot is read again at each start: a snapshot that does not decode would stop this voter for
 * good. So each snapshot is decoded once before raft and the disk get it. */
static const char *snapshot_offence(const struct leat_coordinator *coordinator,
                                    const struct co_install *install,
                                    const struct raft_message *message)
{
    const char *offence = co_message_offence(coordinator, message);
    if (offence) return offence;
    struct leat_machine *machine = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *machine);
    if (!machine) return "no memory to look at its snapshot";
    leat_machine_init(machine, coordinator->options.cores);
    leat_err rc = leat_machine_restore(machine, install->bytes, install->total);
    leat_machine_fini(machine);
    leat_mem_free(machine);
    return rc == LEAT_OK ? NULL
                         : "its snapshot does not decode: is this program older than that one?";
}

static void install_whole(struct leat_coordinator *coordinator, struct co_peer *peer,
                          struct leat_msg_bin conf_bytes)
{
    struct co_install *install = &coordinator->receive;
    struct raft_message message = {.type = RAFT_INSTALL_SNAPSHOT,
                                   .server_id = install->id,
                                   .server_address = peer->state.address};
    message.install_snapshot = install->meta;
    struct raft_buffer conf = {.base = (void *)(uintptr_t)conf_bytes.data, .len = conf_bytes.bytes};
    void *data = raft_malloc(install->total);
    raft_configuration_init(&message.install_snapshot.conf);
    if (!data || !leat_raft_configuration_valid(conf.base, conf.len) ||
        raft_configuration_decode(&conf, &message.install_snapshot.conf) != 0) {
        raft_free(data);
        install_drop(install);
        return;
    }
    memcpy(data, install->bytes, install->total);
    message.install_snapshot.data = (struct raft_buffer){.base = data, .len = install->total};
    const char *offence = snapshot_offence(coordinator, install, &message);
    install_drop(install);
    if (offence) {
        co_complain(coordinator, peer, offence);
        leat_raft_message_drop(&message);
        return;
    }
    leat_raft_drive_receive(&coordinator->drive, &message);
}

leat_err co_chunk_add(uint8_t **bytes, size_t *have, size_t total, const struct leat_frame *frame)
{
    /* Doubled at powers of two: so the room follows from the number of bytes. */
    size_t need = *have + frame->payload_bytes, room = CO_CHUNK_BYTES,
           now = *have ? CO_CHUNK_BYTES : 0;
    while (now && now < *have)
        now *= 2;
    while (room < need)
        room *= 2;
    if (room > total) room = total;
    if (room > now || !*bytes) {
        uint8_t *grown = leat_mem_realloc(LEAT_MEM_COORDINATOR, *bytes, room, 1);
        if (!grown) return LEAT_E_NO_MEMORY;
        *bytes = grown;
    }
    memcpy(*bytes + *have, frame->payload, frame->payload_bytes);
    *have = need;
    return LEAT_OK;
}

void co_install_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                     const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_install *install = &coordinator->receive, chunk;
    uint64_t from, to;
    struct leat_msg_bin conf;
    if (!chunk_read(frame, &chunk, &from, &to, &conf) || !coordinator->votes ||
        to != coordinator->voter_id || from != peer->state.voter_id) {
        leat_link_answer_error(coordinator->links, ticket, LEAT_E_INVALID,
                               "a snapshot that is not for this voter");
        return;
    }
    if (chunk.offset == 0) {
        install_drop(install);
        install->id = from;
        install->peer = peer;
        install->total = chunk.total;
        install->meta = chunk.meta;
    }
    if (install->id != from || install->peer != peer || install->offset != chunk.offset ||
        install->total != chunk.total || install->meta.last_index != chunk.meta.last_index ||
        install->meta.term != chunk.meta.term) {
        leat_link_answer_error(coordinator->links, ticket, LEAT_E_AGAIN,
                               "a chunk of a snapshot that was not begun here");
        return;
    }
    leat_err rc = co_chunk_add(&install->bytes, &install->offset, install->total, frame);
    if (rc != LEAT_OK) {
        install_drop(install);
        leat_link_answer_error(coordinator->links, ticket, rc, "no memory for the snapshot");
        return;
    }
    leat_link_answer(coordinator->links, ticket, "\x90", 1);
    if (install->offset == install->total) install_whole(coordinator, peer, conf);
}

void co_install_peer_gone(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    LEAT_ASSERT_OWNER(coordinator);
    for (unsigned i = 0; i < LEAT_VOTERS_MAX; i++)
        if (coordinator->sends[i].id && coordinator->sends[i].peer == peer)
            install_drop(&coordinator->sends[i]);
    if (coordinator->receive.peer == peer) install_drop(&coordinator->receive);
}

void co_install_fini(struct leat_coordinator *coordinator)
{
    for (unsigned i = 0; i < LEAT_VOTERS_MAX; i++)
        install_drop(&coordinator->sends[i]);
    install_drop(&coordinator->receive);
}
