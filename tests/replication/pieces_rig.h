/* SPDX-License-Identifier: Apache-2.0 */
/* A backup alone (backup_rig.h), whose disk and other nodes answer by hand as well. For one test program only. */
#ifndef LEAT_TESTS_REPLICATION_PIECES_RIG_H
#define LEAT_TESTS_REPLICATION_PIECES_RIG_H

#include "tests/replication/backup_rig.h"

static struct {
    struct leat_env env;
    struct leat_disk disk;
    struct leat_post post;
    const struct leat_env *real;
    struct leat_mail *mail; /* to itself */
    struct leat_disk_io *io;
    struct leat_link_call *call;
    leat_err call_rc;
    unsigned calls_fail; /* so many of the next */
} ports;

static inline void disk_submit(void *ctx, struct leat_disk_io *io)
{
    (void)ctx;
    assert_null(ports.io);
    trace("read %llu+%zu\n", (unsigned long long)io->offset, (size_t)io->bytes);
    ports.io = io;
}

static inline void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    assert_int_equal(to, ports.post.self);
    assert_null(ports.mail);
    ports.mail = mail;
}

static inline leat_err net_call(void *ctx, unsigned node, struct leat_link_call *call)
{
    struct rep_pull pull;
    (void)ctx;
    if (ports.call_rc) return ports.call_rc;
    if (ports.calls_fail && ports.calls_fail--) return LEAT_E_CLOSED;
    assert_int_equal(call->kind, LEAT_REP_PULL);
    assert_int_equal(rep_pull_decode(call->control, call->control_bytes, &pull), LEAT_OK);
    trace("n%u PULL %u/%u/%u s%llu %u:%d from %u count %u%s in %llu ms\n", node, pull.log.stream,
          pull.log.streamlet, pull.log.log, (unsigned long long)pull.segment.v,
          pull.prefix_id.bytes, pull.prefix_id.crc != 0, pull.from, pull.count,
          pull.whole ? " whole" : "", (unsigned long long)call->timeout_us / 1000);
    assert_null(ports.call);
    ports.call = call;
    return LEAT_OK;
}

static inline struct rig *rig_ports(void)
{
    struct rig *rig = rig_new();
    memset(&ports, 0, sizeof ports);
    ports.real = rig->backup->options.env;
    ports.env = *ports.real;
    ports.disk = (struct leat_disk){.submit = disk_submit};
    ports.post = (struct leat_post){NULL, post_send, ports.real->post->self};
    ports.env.disk = &ports.disk;
    ports.env.post = &ports.post;
    rig->backup->options.env = &ports.env;
    rig->backup->options.net.call = net_call;
    return rig;
}

static inline void rig_end(struct rig *rig)
{
    rig->backup->options.env = ports.real;
    for (unsigned i = 0; i < rig->seg_count; i++)
        rig->segs[i].file = NULL;
    rig_free(rig);
}

static inline void filed(struct replica *rep)
{
    rep->seg->file = (struct leat_file *)(void *)&rep->seg->file_offset;
}

/* The disk's answer: the image, from that place of the segment on. */
static inline void disk_read(const struct rig *rig, leat_err rc, size_t bytes)
{
    struct leat_disk_io *io = ports.io;
    ports.io = NULL;
    io->rc = rc;
    io->done_bytes = bytes;
    memcpy(io->buffer, rig->image + (io->offset - 4096), bytes);
    io->on_done(io);
}

static inline void pull_as(struct rig *rig, uint64_t id, struct leat_prefix_id prefix_id,
                           uint32_t from, uint32_t count, bool whole)
{
    uint8_t control[REP_PULL_BYTES_MAX];
    struct rep_pull pull = {.log = rig_log,
                            .segment = {id},
                            .prefix_id = prefix_id,
                            .from = from,
                            .count = count,
                            .whole = whole};
    rig_hear(rig, &rig_w2, LEAT_REP_PULL, control, rep_pull_encode(&pull, control));
}

static inline void on_pulled(struct leat_backup_pull *pull, leat_err rc)
{
    (void)pull;
    trace("pulled: %s\n", leat_err_name(rc));
}

static inline void pull_start(struct rig *rig, struct leat_backup_pull *pull)
{
    struct leat_mail *mail;
    leat_err rc = leat_backup_pull(rig->backup, pull);
    if (rc) trace("%s\n", leat_err_name(rc));
    if (rc) return;
    mail = ports.mail;
    ports.mail = NULL;
    mail->deliver(NULL, mail);
}

/* That node's answer: the image, from that place on. */
static inline void piece(const struct rig *rig, leat_err rc, uint32_t from, uint32_t bytes,
                         uint32_t passed)
{
    static uint8_t control[RIG_CAPACITY + 64];
    struct leat_msg_writer writer;
    struct leat_link_call *call = ports.call;
    ports.call = NULL;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_bin(&writer, rig->image + from, bytes);
    leat_msg_write_u64(&writer, passed);
    struct leat_frame frame = {
        .kind = LEAT_REP_PULL, .control = control, .control_bytes = writer.used};
    struct leat_error error = {rc, ""};
    call->on_done(call, rc, rc ? NULL : &frame, &error);
}

static inline struct leat_backup_pull pull_of(const struct rig *rig)
{
    return (struct leat_backup_pull){.log = rig_log,
                                     .segment = {7},
                                     .prefix_id = rig->ends[3],
                                     .version = 4,
                                     .nodes = {2, 3},
                                     .node_count = 2,
                                     .whole = true,
                                     .provisional = true,
                                     .on_done = on_pulled};
}

#endif
