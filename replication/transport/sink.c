/* SPDX-License-Identifier: Apache-2.0 */
/* The backup's side of transports tcp and rpc: the core that receives bytes puts these in place, and acknowledges
 * them. */
#include "replication/transport/data.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

enum { SINK_OWED_MAX = 64 };

/* Words to a writer that this turn's messages earned. */
struct sink_owed {
    struct leat_links *links;
    struct leat_link_ticket ticket;
    struct leat_data_done done;
};

struct leat_transport_sink {
    const struct leat_env *env;
    const struct leat_rmem_host *host;
    const struct leat_transport_baseline *baseline;
    uint64_t (*cpu_ns)(void *ctx);
    void *cpu_ctx;
    struct leat_link_handler handler;
    struct leat_mail mail;
    bool mailed;
    unsigned owed_count;
    struct sink_owed owed[SINK_OWED_MAX];
    struct leat_transport_sink_status status;
    uint32_t requests, mails; /* taken; they wrap */
};

/* One of so many is measured: a thread's CPU time takes a system call. */
enum { SINK_CPU_EVERY = 16 };

struct sink_cpu {
    bool measured;
    uint64_t begin_ns;
};

static uint64_t cpu_now(const struct leat_transport_sink *sink)
{
    return sink->cpu_ns ? sink->cpu_ns(sink->cpu_ctx) : 0;
}

static struct sink_cpu cpu_begin(const struct leat_transport_sink *sink, uint32_t *count)
{
    bool measured = (*count)++ % SINK_CPU_EVERY == 0;
    return (struct sink_cpu){measured, measured ? cpu_now(sink) : 0};
}

static void cpu_end(struct leat_transport_sink *sink, struct sink_cpu cpu, bool emulation)
{
    if (!cpu.measured) return;
    uint64_t spent = (cpu_now(sink) - cpu.begin_ns) * SINK_CPU_EVERY;
    sink->status.cpu_ns += spent;
    if (emulation) sink->status.cpu_emulation_ns += spent;
}

static void owed_send(struct leat_transport_sink *sink)
{
    for (unsigned i = 0; i < sink->owed_count; i++) {
        struct sink_owed *owed = &sink->owed[i];
        struct leat_link *link = leat_link_of(owed->links, &owed->ticket);
        if (!link) continue;
        /* A writer without a DONE waits for ever: losing the link is better. */
        if (leat_link_tell(link, LEAT_DATA_DONE, &owed->done, sizeof owed->done))
            leat_link_cut(link, LEAT_E_AGAIN, "the writer does not read what it is told");
    }
    sink->owed_count = 0;
}

static void sink_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_transport_sink *sink = LEAT_CONTAINER(mail, struct leat_transport_sink, mail);
    (void)actor;
    struct sink_cpu cpu = cpu_begin(sink, &sink->mails);
    sink->mailed = false;
    owed_send(sink);
    cpu_end(sink, cpu, true); /* only tcp owes */
}

/* The writer fails a target at its first refusal, so nothing is said after one. */
static bool owed_same(const struct sink_owed *owed, const struct leat_link_ticket *ticket,
                      uint32_t target)
{
    return owed->ticket.slot == ticket->slot && owed->ticket.connection == ticket->connection &&
           owed->done.target == target;
}

static void owe(struct leat_transport_sink *sink, struct leat_link *link,
                const struct leat_link_ticket *ticket, const struct leat_data_write *write,
                leat_err rc)
{
    for (unsigned i = sink->owed_count; i-- > 0;) {
        struct leat_data_done *done = &sink->owed[i].done;
        if (!owed_same(&sink->owed[i], ticket, write->target)) continue;
        if (done->rc) return;
        if (rc) break; /* the completed writes are reported first */
        done->number = write->number;
        return;
    }
    if (sink->owed_count == SINK_OWED_MAX) owed_send(sink);
    sink->owed[sink->owed_count++] = (struct sink_owed){
        .links = leat_link_links(link),
        .ticket = *ticket,
        .done = {.number = write->number, .target = write->target, .rc = (uint32_t)rc},
    };
    if (sink->mailed) return;
    sink->mailed = true;
    sink->env->post->send(sink->env->post->ctx, sink->env->post->self, &sink->mail);
}

/* The sender's identity, from the link: a node writes only into its own arena, even if it knows another address. */
static struct leat_rmem_from from(const struct leat_link *link)
{
    const struct leat_link_identity *peer = leat_link_peer(link);
    return (struct leat_rmem_from){peer->node, peer->incarnation};
}

/* Into the arena. */
static leat_err put(struct leat_transport_sink *sink, const struct leat_link *link,
                    const struct leat_data_write *write, const struct leat_frame *frame)
{
    uint8_t *at;
    const struct leat_rmem_host *host = sink->host;
    struct leat_rmem_from writer = from(link);
    leat_err rc =
        host->enter(host->ctx, &writer, &write->address, write->offset, frame->payload_bytes, &at);
    if (!rc) {
        memcpy(at, frame->payload, frame->payload_bytes);
        rc = host->leave(host->ctx, &write->address);
    }
    sink->status.writes++;
    if (rc)
        sink->status.refused++;
    else
        sink->status.bytes += frame->payload_bytes;
    return rc;
}

static void attach_take(struct leat_transport_sink *sink, struct leat_link *link,
                        const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    struct leat_rmem_address address;
    uint8_t *at;
    leat_err rc = LEAT_E_INVALID;
    if (frame->control_bytes == sizeof address) {
        memcpy(&address, frame->control, sizeof address);
        struct leat_rmem_from writer = from(link);
        rc = sink->host->enter(sink->host->ctx, &writer, &address, 0, 0, &at);
        if (!rc) rc = sink->host->leave(sink->host->ctx, &address);
    }
    if (rc == LEAT_OK)
        leat_link_answer(leat_link_links(link), ticket, "\x90", 1);
    else
        leat_link_answer_error(leat_link_links(link), ticket, rc,
                               rc == LEAT_E_NOT_FOUND   ? "the backup has no such arena (any more)"
                               : rc == LEAT_E_CANCELLED ? "the backup has revoked the arena"
                                                        : leat_err_text(rc));
}

static void on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    struct leat_transport_sink *sink = owner;
    struct leat_data_write write;
    bool is_request = sink->baseline && frame->kind == sink->baseline->kind;
    bool is_write = frame->kind == LEAT_DATA_WRITE || is_request;
    struct sink_cpu cpu = {false, 0};
    if (is_write) cpu = cpu_begin(sink, &sink->requests);
    if (is_write && frame->control_bytes == sizeof write) {
        memcpy(&write, frame->control, sizeof write);
        leat_err rc = put(sink, link, &write, frame);
        if (is_request)
            sink->baseline->answer(link, ticket, rc);
        else
            owe(sink, link, ticket, &write, rc);
    } else if (frame->kind == LEAT_DATA_ATTACH) {
        attach_take(sink, link, frame, ticket);
    } else if (ticket->request) {
        leat_link_answer_error(leat_link_links(link), ticket, LEAT_E_UNSUPPORTED,
                               "not a message for the memory of a backup");
    } else {
        leat_link_cut(link, LEAT_E_INVALID, "not a message for the memory of a backup");
    }
    if (is_write) cpu_end(sink, cpu, frame->kind == LEAT_DATA_WRITE);
}

static void on_up(void *owner, struct leat_link *link)
{
    (void)owner;
    (void)link;
}

static void on_down(void *owner, struct leat_link *link, bool was_up,
                    const struct leat_error *error)
{
    (void)owner; /* owed acknowledgements find no link */
    (void)link;
    (void)was_up;
    (void)error;
}

leat_err leat_transport_sink_create(const struct leat_transport_sink_options *options,
                                    struct leat_transport_sink **out_sink)
{
    struct leat_transport_sink *sink = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *sink);
    if (!sink) return LEAT_E_NO_MEMORY;
    sink->env = options->env;
    sink->host = options->host;
    sink->baseline = options->baseline;
    sink->cpu_ns = options->cpu_ns;
    sink->cpu_ctx = options->cpu_ctx;
    sink->mail.deliver = sink_deliver;
    sink->handler = (struct leat_link_handler){
        .on_up = on_up, .on_down = on_down, .on_request = on_request, .owner = sink};
    *out_sink = sink;
    return LEAT_OK;
}

void leat_transport_sink_destroy(struct leat_transport_sink **sink)
{
    leat_mem_free(*sink);
    *sink = NULL;
}

const struct leat_link_handler *leat_transport_sink_handler(struct leat_transport_sink *sink)
{
    return &sink->handler;
}

void leat_transport_sink_status(const struct leat_transport_sink *sink,
                                struct leat_transport_sink_status *out)
{
    *out = sink->status;
}
