/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a core that connections hold for answers and calls: see output.h.
 *
 * SUBTLE: why small answers need no room. (1) Connections that take nothing have filled the account. (2) The answers
 * of all other connections are refused or wait. (3) A refusal is an answer. So there is always room for one small
 * answer of a connection that has taken all earlier answers; a connection that has not taken them is not read from.
 * The small answers are bounded by the number of connections and of calls. */
#include "broker/net/output.h"

#include "base/assert.h"
#include "base/node_log.h"
#include "broker/net/core.h"

/* The bucket is full at full_us; each token that is taken puts full_us off by one interval. */
bool leat_rate_has(const struct leat_rate *rate, uint64_t now_us, struct leat_rate_limit limit,
                   uint32_t count)
{
    uint64_t each_us = 1000 * 1000 / limit.per_second;
    uint64_t full_us = rate->full_us > now_us ? rate->full_us : now_us;
    return full_us + count * each_us <= now_us + limit.burst * each_us;
}

bool leat_rate_take(struct leat_rate *rate, uint64_t now_us, struct leat_rate_limit limit,
                    uint32_t count)
{
    if (!leat_rate_has(rate, now_us, limit, count)) return false;
    if (rate->full_us < now_us) rate->full_us = now_us;
    rate->full_us += count * (uint64_t)(1000 * 1000 / limit.per_second);
    return true;
}

void leat_output_init(struct leat_core *core)
{
    const struct leat_node_options *options = &core->node->options;
    core->output.bytes_max = leat_node_output_bytes(options->memory_bytes, options->cores);
    for (unsigned line = 0; line < LEAT_OUTPUT_LINES; line++)
        leat_line_init(&core->output.lines[line]);
    leat_list_init(&core->output.keepers);
    leat_list_init(&core->output.lasts);
}

/* A quarter of the account is for calls alone: where answers have filled the rest, calls are still taken and refused
 * by name. Another eighth is the last part. */
static uint64_t answers_max(const struct leat_core *core)
{
    return core->output.bytes_max / 8 * 5;
}

static uint64_t last_max(const struct leat_core *core)
{
    return core->output.bytes_max / 8;
}

/* Late addresses leave another eighth of the answers' part, and of the calls' part, free.
 *
 * SUBTLE: a connection that takes nothing is closed after LEAT_OUTPUT_OWE_US, and connects again.
 *  1. Connections of twenty addresses ask for large answers and take none. Some connections hold all the room, and
 *     the rest wait in line.
 *  2. The connections that hold the room are closed together. The next connections of the line fill the room at once,
 *     before the closed ones are back.
 *  3. A client of another address that takes its answers has one turn in twenty, a few in a minute.
 * So an address that has let answers lie comes after addresses that have not, and leaves them some room. */
static uint64_t late_leaves(const struct leat_core *core)
{
    return core->output.bytes_max / 8;
}

static uint32_t now_s(const struct leat_core *core)
{
    return (uint32_t)(leat_core_now(core) / 1000000) + 1;
}

static bool is_late(const struct leat_peer *peer)
{
    const struct leat_core *core = peer->core;
    if (peer == &core->link_peer) return false;
    uint32_t late_s = core->output.late_s[peer->address];
    return late_s != 0 && now_s(core) - late_s < LEAT_OUTPUT_LATE_US / 1000000;
}

static unsigned line_of(const struct leat_peer *peer)
{
    return is_late(peer) ? LEAT_OUTPUT_LINE_LATE : LEAT_OUTPUT_LINE;
}

static uint64_t used(const struct leat_core *core)
{
    return core->output.held + core->output.kept + core->net->copied_bytes_all(core->net->ctx);
}

/* Other nodes are no address. */
static uint64_t used_near(const struct leat_peer *peer)
{
    if (peer == &peer->core->link_peer) return 0;
    const struct leat_output_sharer *near = &peer->sharer->output;
    uint64_t copied = peer->conn != NULL ? peer->core->net->copied_bytes_near(peer->conn) : 0;
    return near->held + near->kept + copied;
}

/* Bytes that have to be free for so many bytes: for more than half of the account, half. */
static uint64_t room_of(uint64_t bytes_max, size_t bytes)
{
    return bytes < bytes_max / 2 ? bytes : bytes_max / 2;
}

static bool has_room(uint64_t bytes_used, uint64_t bytes_max, size_t bytes)
{
    return bytes_used + room_of(bytes_max, bytes) <= bytes_max;
}

static struct leat_peer *first_of(const struct leat_queue *queue)
{
    return LEAT_CONTAINER(queue->members.next, struct leat_peer, output.wait);
}

static bool core_has_room(const struct leat_core *core, unsigned line, size_t bytes)
{
    if (line == LEAT_OUTPUT_LINE_LAST) return core->output.last + bytes <= last_max(core);
    const uint64_t leaves = line == LEAT_OUTPUT_LINE_LATE ? late_leaves(core) : 0;
    return has_room(used(core), answers_max(core) - leaves, bytes);
}

static bool address_has_room(const struct leat_peer *peer, unsigned line, size_t bytes)
{
    if (line == LEAT_OUTPUT_LINE_LAST)
        return peer->sharer->output.last + bytes <= last_max(peer->core) / 2;
    return has_room(used_near(peer), answers_max(peer->core) / 2, bytes);
}

/* A connection whose address has its half waits for its own address; no other connection waits for it. */
static bool somebody_waits(const struct leat_core *core, unsigned line)
{
    LEAT_LIST_EACH(&core->output.lines[line].ring, ring)
    {
        const struct leat_peer *peer = first_of(leat_queue_of(ring));
        if (address_has_room(peer, line, peer->output.wanted)) return true;
    }
    return false;
}

static bool somebody_is_first(const struct leat_core *core, unsigned line)
{
    return somebody_waits(core, line) ||
           (line == LEAT_OUTPUT_LINE_LATE && somebody_waits(core, LEAT_OUTPUT_LINE));
}

static void keep_end(struct leat_peer *peer)
{
    leat_list_remove(&peer->output.keep);
    peer->core->output.kept -= peer->output.kept;
    peer->sharer->output.kept -= peer->output.kept;
    peer->output.kept = 0;
}

/* ---- the last part ---- */

static bool owes_nothing(const struct leat_peer *peer)
{
    return peer->conn != NULL && peer->core->net->queued_bytes(peer->conn) == 0;
}

static void last_end(struct leat_peer *peer)
{
    leat_list_remove(&peer->output.lasts);
    peer->core->output.last -= peer->output.last;
    peer->sharer->output.last -= peer->output.last;
    peer->output.last = 0;
    peer->output.promised = false;
}

/* The peer owes nothing, so its piece of the last part has been taken. */
static void last_begin(struct leat_peer *peer, size_t bytes)
{
    last_end(peer);
    peer->output.last = (uint32_t)bytes;
    peer->core->output.last += bytes;
    peer->sharer->output.last += bytes;
    leat_list_push_back(&peer->core->output.lasts, &peer->output.lasts);
}

/* The network takes bytes without telling. */
static void lasts_look(struct leat_core *core)
{
    uint64_t now_us = leat_core_now(core);
    LEAT_LIST_EACH(&core->output.lasts, link)
    {
        struct leat_peer *peer = LEAT_CONTAINER(link, struct leat_peer, output.lasts);
        const struct leat_output_peer *output = &peer->output;
        if (output->promised && now_us - output->kept_since_us < LEAT_OUTPUT_KEEP_US) continue;
        if (owes_nothing(peer)) last_end(peer);
    }
}

static bool last_fits(struct leat_peer *peer, size_t bytes)
{
    const unsigned line = LEAT_OUTPUT_LINE_LAST;
    struct leat_core *core = peer->core;
    if (bytes > LEAT_OUTPUT_LAST_BYTES || !owes_nothing(peer)) return false;
    if (peer->output.promised) {
        peer->output.promised = false;
        if (bytes <= peer->output.last) return true;
    } else if (somebody_is_first(core, line)) {
        return false;
    }
    if (!core_has_room(core, line, bytes) || !address_has_room(peer, line, bytes)) lasts_look(core);
    if (!core_has_room(core, line, bytes) || !address_has_room(peer, line, bytes)) return false;
    last_begin(peer, bytes);
    return true;
}

bool leat_output_fits(struct leat_peer *peer, size_t bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    if (bytes <= LEAT_OUTPUT_SMALL_BYTES) return true;
    const bool called = peer->output.kept > 0, promised = peer->output.promised;
    const unsigned line = line_of(peer);
    if (called) keep_end(peer);
    peer->output.called = false;
    if ((called || !somebody_is_first(core, line)) && core_has_room(core, line, bytes) &&
        address_has_room(peer, line, bytes)) {
        if (promised) last_end(peer);
        return true;
    }
    if (last_fits(peer, bytes)) return true;
    peer->output.called = called || promised;
    core->output.refused = true;
    return false;
}

static uint64_t share(const struct leat_core *core)
{
    return core->output.bytes_max / LEAT_OUTPUT_SHARES;
}

bool leat_output_is_over(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    const struct leat_core *core = peer->core;
    uint64_t own = core->net->copied_bytes(peer->conn) + peer->output.held;
    return own > share(core) ||
           (own > 0 && (used(core) > answers_max(core) || used_near(peer) > answers_max(core) / 2));
}

bool leat_output_holds_share(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->output.held > share(peer->core);
}

bool leat_output_take(struct leat_peer *peer, size_t bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    const uint64_t most = core->output.bytes_max;
    const uint64_t leaves = is_late(peer) ? late_leaves(core) : 0;
    if (bytes > LEAT_OUTPUT_CALL_BYTES && (!has_room(used(core), most - leaves, bytes) ||
                                           !has_room(used_near(peer), most / 2, bytes))) {
        core->output.refused = true;
        return false;
    }
    leat_output_add(peer, bytes);
    return true;
}

void leat_output_add(struct leat_peer *peer, size_t bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
    peer->core->output.held += bytes;
    peer->output.held += bytes;
    peer->sharer->output.held += bytes;
}

void leat_output_give(struct leat_peer *peer, size_t bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
    LEAT_ASSERT_CMP(peer->output.held, >=, bytes);
    peer->core->output.held -= bytes;
    peer->output.held -= bytes;
    peer->sharer->output.held -= bytes;
}

/* ---- waiting for room ---- */

static struct leat_queue *queue_of(const struct leat_peer *peer)
{
    return &peer->sharer->output.queues[peer->output.line];
}

void leat_output_wait(struct leat_peer *peer, size_t bytes, bool asks_again)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_output_peer *output = &peer->output;
    struct leat_core *core = peer->core;
    if (peer->conn == NULL || !leat_list_empty(&output->wait)) return;
    output->wanted = bytes;
    output->asks_again = asks_again;
    const bool last = bytes <= LEAT_OUTPUT_LAST_BYTES && owes_nothing(peer);
    output->line = (uint8_t)(last ? LEAT_OUTPUT_LINE_LAST : line_of(peer));
    if (!output->called) output->waits_since_us = leat_core_now(core);
    leat_line_join(&core->output.lines[output->line], queue_of(peer), &output->wait,
                   output->called);
    output->called = false;
}

static void wait_end(struct leat_peer *peer)
{
    leat_line_leave(queue_of(peer), &peer->output.wait);
}

void leat_output_leave(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    wait_end(peer);
    keep_end(peer);
    last_end(peer);
}

static void call(struct leat_peer *peer, unsigned line)
{
    struct leat_core *core = peer->core;
    struct leat_output_peer *output = &peer->output;
    wait_end(peer);
    output->kept_since_us = leat_core_now(core);
    if (line == LEAT_OUTPUT_LINE_LAST) {
        last_begin(peer, output->wanted);
        output->promised = true;
    } else {
        output->kept = room_of(answers_max(core), output->wanted);
        core->output.kept += output->kept;
        peer->sharer->output.kept += output->kept;
        leat_list_push_back(&core->output.keepers, &output->keep);
    }
    if (leat_list_empty(&peer->answers)) leat_list_push_back(&core->answer_peers, &peer->answers);
}

/* An address that has its half is passed over. A connection that waits for more than the core has left is not: the
 * line stops there, and false is returned. */
static bool line_call(struct leat_core *core, unsigned at)
{
    struct leat_line *line = &core->output.lines[at];
    LEAT_LIST_EACH(&line->ring, ring)
    {
        struct leat_queue *queue = leat_queue_of(ring);
        struct leat_peer *peer = first_of(queue);
        if (!address_has_room(peer, at, peer->output.wanted)) continue;
        if (!core_has_room(core, at, peer->output.wanted)) return false;
        leat_line_turn(line, queue);
        call(peer, at);
    }
    return true;
}

void leat_output_resume(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    if (!leat_line_empty(&core->output.lines[LEAT_OUTPUT_LINE_LAST])) {
        lasts_look(core);
        (void)line_call(core, LEAT_OUTPUT_LINE_LAST);
    }
    if (line_call(core, LEAT_OUTPUT_LINE)) (void)line_call(core, LEAT_OUTPUT_LINE_LATE);
}

static void close_with_words(struct leat_peer *peer, const char *words)
{
    struct leat_core *core = peer->core;
    leat_node_log_summed(&core->closed_sum, leat_core_now(core), LEAT_NODE_LOG_INFO,
                         "%s (%s) %s; connection closed", core->net->peer(peer->conn), peer->name,
                         words);
    core->net->close(peer->conn);
}

static uint64_t time_of(const struct leat_peer *peer, bool wanted)
{
    if (peer->output.last > 0) return LEAT_OUTPUT_LAST_US;
    return wanted ? LEAT_OUTPUT_STRUCTS_US : LEAT_OUTPUT_OWE_US;
}

static uint64_t due_of(uint64_t queued, uint64_t time_us)
{
    uint64_t most = LEAT_OUTPUT_OWE_RATE * time_us / 1000000;
    return queued < most ? queued : most;
}

/* Bytes that the peer should have taken by now. */
static uint64_t due_by(const struct leat_output_peer *output, uint64_t now_us)
{
    uint64_t since_us = now_us - output->owes_since_us;
    uint64_t left_us = since_us < output->due_us ? output->due_us - since_us : 0;
    uint64_t left = LEAT_OUTPUT_OWE_RATE * left_us / 1000000;
    return output->due_bytes > left ? output->due_bytes - left : 0;
}

/* SUBTLE: a connection that takes one byte a second is not stalled, and eight such connections can hold the whole
 * account. So while other connections find no room, each connection that holds some is given a time. Within this time
 * the connection has to take all bytes that it owed at the beginning, or LEAT_OUTPUT_OWE_RATE; then it is given as
 * long again. A connection that owes at every look is not at fault: a fast reader of large answers does so. wanted:
 * other connections wait for structs of requests, and a connection that takes no answers keeps the structs of its
 * requests. */
static void owing_tick(struct leat_peer *peer, uint64_t now_us, bool wanted)
{
    const struct leat_net *net = peer->core->net;
    struct leat_output_peer *output = &peer->output;
    uint64_t queued = net->queued_bytes(peer->conn), taken = net->taken_bytes(peer->conn);
    bool in_the_way =
        (peer->core->output.full && net->copied_bytes(peer->conn) + output->held > 0) ||
        (wanted && peer->requests > 0);
    if (queued == 0 || !in_the_way) {
        output->owes_since_us = 0;
    } else if (output->owes_since_us == 0 || taken >= output->due_bytes) {
        output->owes_since_us = now_us;
        output->due_us = time_of(peer, wanted);
        output->due_bytes = taken + due_of(queued, output->due_us);
    } else if (taken < due_by(output, now_us)) {
        peer->core->output.late_s[peer->address] = now_s(peer->core);
        if (now_us - output->owes_since_us >= output->due_us)
            close_with_words(peer,
                             "takes its answers too slowly while others have no room for theirs");
    }
}

/* A connection that was told to try again only loses its place. */
static void queue_tick(struct leat_queue *queue, uint64_t now_us)
{
    LEAT_LIST_EACH(&queue->members, wait)
    {
        struct leat_peer *peer = LEAT_CONTAINER(wait, struct leat_peer, output.wait);
        if (now_us - peer->output.waits_since_us < LEAT_OUTPUT_WAIT_US) return;
        wait_end(peer);
        if (peer->output.asks_again) continue;
        close_with_words(peer,
                         "found no room for its answer, which others hold that they do not take");
    }
}

static void keepers_tick(struct leat_core *core, uint64_t now_us)
{
    LEAT_LIST_EACH(&core->output.keepers, keep)
    {
        struct leat_peer *peer = LEAT_CONTAINER(keep, struct leat_peer, output.keep);
        if (now_us - peer->output.kept_since_us < LEAT_OUTPUT_KEEP_US) return;
        keep_end(peer);
    }
}

void leat_output_tick(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    uint64_t now_us = leat_core_now(core);
    core->output.full = core->output.refused || leat_output_crowded(&core->output) ||
                        used(core) > answers_max(core);
    core->output.refused = false;
    bool wanted = leat_stocks_are_wanted(core);
    LEAT_LIST_EACH(&core->owing_peers, link)
    owing_tick(LEAT_CONTAINER(link, struct leat_peer, owing), now_us, wanted);
    for (unsigned line = 0; line < LEAT_OUTPUT_LINES; line++) {
        LEAT_LIST_EACH(&core->output.lines[line].ring, ring)
        queue_tick(leat_queue_of(ring), now_us);
    }
    keepers_tick(core, now_us);
    lasts_look(core);
}
