/* SPDX-License-Identifier: Apache-2.0 */
/* A primary's requests to backups and to the store, as text. For one test program only. */
#ifndef LEAT_TESTS_REPLICATION_PRIMARY_TRACE_H
#define LEAT_TESTS_REPLICATION_PRIMARY_TRACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "replication/primary/state.h"
#include "tests/trace.h"

/* Values that are the same in all tests, and so are left out. */
enum { RIG_CAPACITY = 64 * 1024, RIG_EPOCH = 5 };

static inline const char *rig_kind_name(unsigned kind)
{
    static const char *const names[] = {"ATTACH",   "OPEN", "CLOSE",   "HIBERNATE", "RESUME",
                                        "COMPLETE", "DROP", "RESTAMP", "FLUSH",     "AUDIT",
                                        "SETTLE",   "PULL", "SEAL",    "ASK"};
    return names[kind - LEAT_REP_ATTACH];
}

static inline const char *rig_req_name(enum leat_store_req_kind kind)
{
    switch (kind) {
    case LEAT_STORE_RESERVE:
        return "RESERVE";
    case LEAT_STORE_COMMIT:
        return "COMMIT";
    case LEAT_STORE_CLOSE:
        return "CLOSE";
    case LEAT_STORE_HIBERNATE:
        return "HIBERNATE";
    case LEAT_STORE_RESUME:
        return "RESUME";
    case LEAT_STORE_DROP:
        return "DROP";
    case LEAT_STORE_EVICT:
        return "EVICT";
    case LEAT_STORE_STAMP:
        return "STAMP";
    case LEAT_STORE_GIVE_UP:
        return "GIVE_UP";
    default:
        return "?";
    }
}

static inline void rig_body_trace(const struct rep_body *body)
{
    static const struct leat_log_ref usual = {1, 2, 3};
    trace(" s%llu h%llu v%u d%u", (unsigned long long)body->segment.v,
          (unsigned long long)body->handle, body->version, body->durability);
    if (body->incomplete) trace(" part");
    if (body->prefix_id.bytes || body->prefix_id.crc)
        trace(" %u:%u", body->prefix_id.bytes, body->prefix_id.crc);
    if (body->next_offset || body->max_timestamp_ms)
        trace(" to %llu/%lld", (unsigned long long)body->next_offset,
              (long long)body->max_timestamp_ms);
    if (body->passed_bytes) trace(" passed %u", body->passed_bytes);
    if (!leat_log_ref_equal(body->log, usual) || body->capacity != RIG_CAPACITY)
        trace(" %u/%u/%u cap %u", body->log.stream, body->log.streamlet, body->log.log,
              body->capacity);
    if (body->epoch.v != RIG_EPOCH || body->owner.v != RIG_EPOCH)
        trace(" e%u/%u", body->epoch.v, body->owner.v);
}

static inline void rig_pairs_trace(unsigned kind, const struct leat_link_call *call)
{
    static const char *const words[] = {"DROP", "KEEP", "LEAVE", "?"};
    static struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    uint32_t count;
    assert_int_equal(rep_pairs_decode(call->control, call->control_bytes, pairs, &count), LEAT_OK);
    for (uint32_t i = 0; i < count; i++) {
        unsigned long long handle = pairs[i].handle, value = pairs[i].value;
        if (kind == LEAT_REP_SETTLE)
            trace(" h%llu=%s/e%llu/p%u", handle, words[value % REP_SETTLE_WORDS],
                  value / REP_SETTLE_WORDS, pairs[i].passed);
        else
            trace(" h%llu=%llu%s", handle, value, pairs[i].passed ? " passed" : "");
    }
}

static inline void rig_call_trace(unsigned node, const struct leat_link_call *call)
{
    struct rep_body body;
    struct leat_msg_reader reader;
    trace("n%u %s", node, rig_kind_name(call->kind));
    switch (call->kind) {
    case LEAT_REP_ATTACH:
    case LEAT_REP_ASK:
        assert_int_equal(call->control_bytes, 1);
        assert_memory_equal(call->control, "\x90", 1);
        break;
    case LEAT_REP_AUDIT:
        leat_msg_reader_init(&reader, call->control, call->control_bytes);
        assert_int_equal(leat_msg_read_array(&reader), 2);
        trace(" from%llu", (unsigned long long)leat_msg_read_u64(&reader));
        trace("%s", leat_msg_read_bool(&reader) ? " all" : "");
        assert_true(leat_msg_read_done(&reader));
        break;
    case LEAT_REP_RESTAMP:
    case LEAT_REP_FLUSH:
    case LEAT_REP_SETTLE:
        rig_pairs_trace(call->kind, call);
        break;
    default:
        assert_int_equal(rep_body_decode(call->control, call->control_bytes, &body), LEAT_OK);
        rig_body_trace(&body);
        break;
    }
    trace(", %llu s\n", (unsigned long long)call->timeout_us / 1000 / 1000);
}

#endif
