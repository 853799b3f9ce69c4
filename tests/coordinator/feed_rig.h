/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that membership/feed.c calls, except links: raft's log, the tables, voters. */
#ifndef LEAT_TESTS_COORDINATOR_FEED_RIG_H
#define LEAT_TESTS_COORDINATOR_FEED_RIG_H

#include "base/bytes.h"
#include "coordinator/membership/applied.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "tests/coordinator/solo_rig.h"

static struct leat_raft_entry entries[40]; /* those of index 1 on */
static uint64_t log_first, log_last;       /* which are in the log */
static size_t snapshot_bytes;
static leat_err snapshot_rc, apply_rc, restore_rc, chunk_rc;
static bool peer_votes[PEERS], everybody_votes;
static struct co_peer *leader;

const struct leat_raft_entry *leat_raft_log_get(const struct leat_raft_log *log, uint64_t index)
{
    assert_ptr_equal(log, &coordinator->drive.log);
    return index >= log_first && index <= log_last ? &entries[index] : NULL;
}
leat_err leat_machine_snapshot(const struct leat_machine *machine, uint8_t **out_bytes,
                               size_t *out_count)
{
    assert_ptr_equal(machine, &coordinator->machine);
    trace("snapshot\n");
    *out_bytes = NULL;
    if (snapshot_rc != LEAT_OK) {
        *out_bytes = (uint8_t *)1; /* means nothing then */
        return snapshot_rc;
    }
    *out_bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, snapshot_bytes, 1);
    assert_non_null(*out_bytes);
    for (size_t i = 0; i < snapshot_bytes; i++)
        (*out_bytes)[i] = (uint8_t)(i % 251);
    *out_count = snapshot_bytes;
    return LEAT_OK;
}
leat_err co_apply(struct leat_coordinator *asked, const uint8_t *bytes, size_t count)
{
    assert_ptr_equal(asked, coordinator);
    trace("apply at %llu", (unsigned long long)coordinator->applied);
    bytes_trace(bytes, count);
    trace("\n");
    return apply_rc;
}
leat_err co_restore(struct leat_coordinator *asked, const uint8_t *bytes, size_t count)
{
    assert_ptr_equal(asked, coordinator);
    trace("restore at %llu", (unsigned long long)coordinator->applied);
    bytes_trace(bytes, count);
    trace("\n");
    return restore_rc;
}
leat_err co_chunk_add(uint8_t **bytes, size_t *have, size_t total, const struct leat_frame *frame)
{
    trace("chunk at %zu of %zu\n", *have, total);
    if (chunk_rc != LEAT_OK) return chunk_rc;
    uint8_t *more = leat_mem_realloc(LEAT_MEM_COORDINATOR, *bytes, *have + frame->payload_bytes, 1);
    assert_non_null(more);
    memcpy(more + *have, frame->payload, frame->payload_bytes);
    *bytes = more;
    *have += frame->payload_bytes;
    return LEAT_OK;
}
struct co_peer *co_peer_leader(struct leat_coordinator *asked)
{
    assert_ptr_equal(asked, coordinator);
    return leader;
}
bool co_peer_votes(const struct leat_coordinator *asked, const struct co_peer *peer)
{
    assert_ptr_equal(asked, coordinator);
    return everybody_votes || peer_votes[of(peer) - peers];
}
void co_requests_fail(struct leat_coordinator *asked, leat_err rc, const char *why)
{
    assert_ptr_equal(asked, coordinator);
    trace("requests fail %s: %s\n", leat_err_name(rc), why);
}
void co_peers_want(struct leat_coordinator *asked)
{
    (void)asked;
    trace("peers wanted\n");
}
void co_voters_applied(struct leat_coordinator *asked,
                       const struct raft_configuration *configuration)
{
    assert_ptr_equal(asked, coordinator);
    trace("voters at %llu:", (unsigned long long)coordinator->applied);
    for (unsigned i = 0; i < configuration->n; i++)
        trace(" %llu %s %d", configuration->servers[i].id, configuration->servers[i].address,
              configuration->servers[i].role);
    trace("\n");
}

static inline int begin(void **state)
{
    solo_begin(state);
    static const uint8_t data[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    for (unsigned i = 0; i < 40; i++)
        entries[i] = (struct leat_raft_entry){
            .type = RAFT_COMMAND, .data = (uint8_t *)(uintptr_t)data + i, .bytes = i % 5};
    log_first = 1;
    log_last = 39;
    snapshot_bytes = 10;
    snapshot_rc = apply_rc = restore_rc = chunk_rc = LEAT_OK;
    memset(peer_votes, 0, sizeof peer_votes);
    leader = NULL;
    coordinator->applied = 10;
    return 0;
}

#define FEED_TEST(name) cmocka_unit_test_setup_teardown(name, begin, solo_finish)

#endif
