/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/alone.h"

#include "broker/admin/calls.h"
#include "broker/data/append.h"
#include "broker/data/fetch.h"
#include "broker/data/lookup.h"
#include "broker/net/hooks.h"
#include "broker/node/bringup.h"
#include "broker/node/native.h"
#include "broker/ownership/takeover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct alone alone;

/* What the source tells those above it, each where the test has it. */
static const struct leat_core_hooks hooks;

/* ---- what was called ---- */

static char lines[64 * 1024];
static size_t lines_bytes;

static void vsaid(const char *format, va_list args)
{
    int bytes = vsnprintf(lines + lines_bytes, sizeof lines - lines_bytes, format, args);
    assert_in_range(bytes, 0, sizeof lines - lines_bytes - 2);
    lines_bytes += (size_t)bytes;
    lines[lines_bytes++] = '\n';
    lines[lines_bytes] = '\0';
}

void said(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsaid(format, args);
    va_end(args);
}

void said_enough(void)
{
    lines_bytes = 0;
    lines[0] = '\0';
}

bool said_one(const char *begins)
{
    if (strncmp(lines, begins, strlen(begins)) != 0) return false;
    const char *rest = strchr(lines, '\n') + 1;
    lines_bytes -= (size_t)(rest - lines);
    memmove(lines, rest, lines_bytes + 1);
    return true;
}

void assert_said_at(const char *expected, const char *file, int line)
{
    if (strcmp(lines, expected) != 0) {
        print_error("---- said\n%s---- expected\n%s----\n", lines, expected);
        _fail(file, line);
    }
    said_enough();
}

void assert_said_first_at(const char *expected, const char *file, int line)
{
    if (strlen(lines) > strlen(expected)) lines[strlen(expected)] = '\0';
    assert_said_at(expected, file, line);
}

static const char *text(const char *format, ...) LEAT_PRINTF(1, 2);
static const char *text(const char *format, ...)
{
    static char texts[16][128];
    static unsigned at;
    char *out = texts[at++ % 16];
    va_list args;
    va_start(args, format);
    vsnprintf(out, sizeof texts[0], format, args);
    va_end(args);
    return out;
}

const char *ref_text(struct leat_log_ref ref)
{
    return text("%u/%u/%u", ref.stream, ref.streamlet, ref.log);
}

const char *prefix_id_text(struct leat_prefix_id prefix_id)
{
    return text("%u:%x", prefix_id.bytes, prefix_id.crc);
}

const char *tail_text(const struct leat_tail_record *tail)
{
    return text("segment %lld %s next %llu%s", (long long)tail->segment,
                prefix_id_text(tail->prefix_id), (unsigned long long)tail->next_offset,
                tail->jumped ? " jumped" : "");
}

static char last_line[512];

const char *node_log_line(void)
{
    return last_line;
}

static void node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    snprintf(last_line, sizeof last_line, "%s", line);
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    const char *colon = strchr(line, ':');
    (void)ctx;
    said("node log %s: %.*s", levels[level], colon != NULL ? (int)(colon - line) : 1000, line);
}

/* ---- ports ---- */

static uint64_t clock_now(void *ctx)
{
    return ((struct alone *)ctx)->now_us;
}

static void clock_wake_at(void *ctx, uint64_t at_us)
{
    (void)ctx, (void)at_us; /* tests let timers expire by hand */
}

static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct alone *it = ctx;
    assert_in_range(it->mail_count, 0, ALONE_MAILS - 1);
    said("mail to %u", to);
    it->to[it->mail_count] = to;
    it->mails[it->mail_count++] = mail;
}

static void disk_submit(void *ctx, struct leat_disk_io *io)
{
    struct alone *it = ctx;
    said("read %zu bytes at %llu%s", io->bytes, (unsigned long long)io->offset,
         (uintptr_t)io->buffer % 4096 == 0 ? "" : ", not aligned");
    assert_int_equal(io->kind, LEAT_DISK_READ);
    assert_null(it->io);
    memset(io->buffer, 0xa5, io->bytes); /* all of it is there to be written */
    it->io = io;
}

bool alone_deliver(void)
{
    if (alone.mail_count == 0) return false;
    struct leat_mail *mail = alone.mails[0];
    unsigned to = alone.to[0];
    alone.mail_count--;
    memmove(&alone.mails[0], &alone.mails[1], alone.mail_count * sizeof alone.mails[0]);
    memmove(&alone.to[0], &alone.to[1], alone.mail_count * sizeof alone.to[0]);
    assert_in_range(to, 0, ALONE_CORES - 1);
    mail->deliver(&alone.cores[to], mail);
    return true;
}

void alone_deliver_all(void)
{
    for (unsigned i = 0; alone_deliver(); i++)
        assert_in_range(i, 0, 1000);
}

void alone_io_done(leat_err rc, size_t bytes)
{
    struct leat_disk_io *io = alone.io;
    assert_non_null(io);
    alone.io = NULL;
    io->rc = rc;
    io->done_bytes = bytes;
    io->on_done(io);
}

/* ---- the node ---- */

void alone_begin(void)
{
    memset(&alone, 0, sizeof alone);
    mallopt(M_PERTURB, 0x5a); /* what was freed, or never written, is seen */
    alone.now_us = 1000 * 1000;
    alone.clock = (struct leat_clock){.ctx = &alone, .now_us = clock_now, .wake_at = clock_wake_at};
    alone.post = (struct leat_post){.ctx = &alone, .send = post_send};
    alone.disk = (struct leat_disk){.ctx = &alone, .submit = disk_submit};
    alone.env = (struct leat_env){.clock = &alone.clock, .post = &alone.post, .disk = &alone.disk};
    alone.node.cores = alone.cores;
    for (unsigned i = 0; i < ALONE_CORES; i++)
        core_parts_set(&alone.cores[i], &alone.parts[i]);
    alone.node.hooks = &hooks;
    alone.node.options.cores = ALONE_CORES;
    alone.node.options.coordinator_env = &alone.env;
    alone.node.incarnation = ALONE_SELF;
    snprintf(alone.node.name, sizeof alone.node.name, "n1");
    alone.desc =
        calloc(1, sizeof *alone.desc + ALONE_STREAMLETS * sizeof alone.desc->streamlets[0]);
    assert_non_null(alone.desc);
    alone.desc->id = ALONE_STREAM;
    snprintf(alone.desc->name, sizeof alone.desc->name, "orders");
    alone.desc->settings = (struct leat_stream_settings){
        .streamlets = ALONE_STREAMLETS, .logs = ALONE_LOGS, .copies = 3, .min_copies = 2};
    alone.desc->streamlet_count = ALONE_STREAMLETS;
    for (uint32_t s = 0; s < ALONE_STREAMLETS; s++) {
        alone.desc->streamlets[s].owner = ALONE_SELF;
        alone.desc->streamlets[s].epoch.v = 5;
    }
    alone.stream.desc = alone.desc;
    for (uint32_t i = 0; i < ALONE_CORES; i++) {
        alone.cores[i].node = &alone.node;
        alone.cores[i].index = i;
        alone.cores[i].env = &alone.env;
    }
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_DEBUG);
    said_enough();
}

void alone_end(void)
{
    assert_int_equal(alone.mail_count, 0);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    free(alone.desc);
    alone.desc = NULL;
}

void *alone_exact(const void *rows, size_t bytes)
{
    void *copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, rows, bytes);
    return copy;
}

/* A rig with tables of its own has another. */
struct leat_stream *leat_stream_find(const struct leat_core *core, uint32_t id)
{
    assert_ptr_equal(core->node, &alone.node);
    return id == ALONE_STREAM && !alone.no_stream ? &alone.stream : NULL;
}

bool leat_core_owns(const struct leat_core *core, const struct leat_stream_desc *desc,
                    uint32_t streamlet)
{
    return desc->streamlets[streamlet].owner == core->node->incarnation;
}

uint32_t leat_core_of_log(const struct leat_node *node, struct leat_log_ref ref, uint32_t logs)
{
    (void)node;
    assert_int_equal(logs, ALONE_LOGS);
    return ref.log % ALONE_CORES;
}

/* ---- hooks ---- */

#pragma weak leat_peer_call
#pragma weak leat_fetch_undefer
#pragma weak leat_fetch_on_acked
#pragma weak leat_append_on_room
#pragma weak leat_groups_attach
#pragma weak leat_groups_log_made
#pragma weak leat_repair_ask
#pragma weak leat_adopt_damage_tell
#pragma weak leat_takeover_older
#pragma weak leat_move_part_gone
#pragma weak leat_walk_log_released
static const struct leat_core_hooks hooks = {
    .request = leat_peer_call,
    .drained = leat_fetch_undefer,
    .acked = leat_fetch_on_acked,
    .room = leat_append_on_room,
    .groups_attach = leat_groups_attach,
    .groups_made = leat_groups_log_made,
    .damaged = leat_repair_ask,
    .front_known = leat_adopt_damage_tell,
    .older = leat_takeover_older,
    .part_gone = leat_move_part_gone,
    .released = leat_walk_log_released,
};
