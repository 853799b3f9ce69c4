/* What connections hold of a core's memory for answers and calls: see output.h.
 *
 * SUBTLE: why small answers need no room. (1) Connections that take nothing have filled it. (2) Everybody else's
 * answers are refused or wait. (3) A refusal is an answer. So there is always room for one small answer of a connection
 * that has taken all others; one that has not is not read from. What that adds is bounded by the number of connections
 * and of calls. */
#include "broker/output.h"

#include "base/assert.h"
#include "base/diary.h"
#include "broker/core.h"

/* The bucket is full at full_us; each that is taken puts that off by one interval. */
bool leat_rate_take(struct leat_rate *rate, uint64_t now_us, uint32_t burst, uint32_t per_second)
{
    uint64_t each_us = 1000 * 1000 / per_second;
    uint64_t full_us = rate->full_us > now_us ? rate->full_us : now_us;
    if (full_us + each_us > now_us + burst * each_us) return false;
    rate->full_us = full_us + each_us;
    return true;
}

uint64_t leat_node_output_bytes(uint64_t memory_bytes, uint32_t cores)
{
    uint64_t share = memory_bytes / 32 / cores;
    if (share < LEAT_OUTPUT_BYTES_MIN) share = LEAT_OUTPUT_BYTES_MIN;
    return share < LEAT_OUTPUT_BYTES_MAX ? share : LEAT_OUTPUT_BYTES_MAX;
}

void leat_output_init(struct leat_core *core)
{
    const struct leat_node_options *options = &core->node->options;
    core->output.bytes_max = leat_node_output_bytes(options->memory_bytes, options->cores);
    leat_list_init(&core->output.waits);
}

/* Of it a quarter is for calls alone: where answers have filled the rest, they are still taken and refused by name. */
static uint64_t answers_max(const struct leat_core *core)
{
    return core->output.bytes_max - core->output.bytes_max / 4;
}

static uint64_t used(const struct leat_core *core)
{
    return core->output.held + core->net->copied_bytes_all(core->net->ctx);
}

/* What has to be free for so many bytes: of what is larger than all there is, half. */
static uint64_t room_of(uint64_t bytes_max, size_t bytes)
{
    return bytes < bytes_max / 2 ? bytes : bytes_max / 2;
}

bool leat_output_fits(struct leat_core *core, size_t bytes)
{
    if (bytes <= LEAT_OUTPUT_SMALL_BYTES ||
        used(core) + room_of(answers_max(core), bytes) <= answers_max(core))
        return true;
    core->output.refused = true;
    return false;
}

static uint64_t share(const struct leat_core *core)
{
    return core->output.bytes_max / LEAT_OUTPUT_SHARES;
}

bool leat_output_is_over(const struct leat_peer *peer)
{
    const struct leat_core *core = peer->core;
    uint64_t own = core->net->copied_bytes(peer->conn) + peer->output.held;
    return own > share(core) || (own > 0 && used(core) > answers_max(core));
}

bool leat_output_holds_share(const struct leat_peer *peer)
{
    return peer->output.held > share(peer->core);
}

bool leat_output_take(struct leat_peer *peer, size_t bytes)
{
    struct leat_core *core = peer->core;
    if (bytes > LEAT_OUTPUT_CALL_BYTES &&
        used(core) + room_of(core->output.bytes_max, bytes) > core->output.bytes_max) {
        core->output.refused = true;
        return false;
    }
    leat_output_add(peer, bytes);
    return true;
}

void leat_output_add(struct leat_peer *peer, size_t bytes)
{
    peer->core->output.held += bytes;
    peer->output.held += bytes;
}

void leat_output_give(struct leat_peer *peer, size_t bytes)
{
    LEAT_ASSERT_CMP(peer->output.held, >=, bytes);
    peer->core->output.held -= bytes;
    peer->output.held -= bytes;
}

/* ---- waiting for room ---- */

void leat_output_wait(struct leat_peer *peer, size_t bytes)
{
    peer->output.wanted = bytes;
    if (!leat_list_empty(&peer->output.wait)) return;
    peer->output.waits_since_us = leat_core_now(peer->core);
    leat_list_push_back(&peer->core->output.waits, &peer->output.wait);
}

void leat_output_wait_end(struct leat_peer *peer)
{
    leat_list_remove(&peer->output.wait);
}

static struct leat_peer *peer_of(struct leat_list *link)
{
    return LEAT_CONTAINER(link, struct leat_peer, output.wait);
}

void leat_output_resume(struct leat_core *core)
{
    uint64_t promised = 0;
    while (!leat_list_empty(&core->output.waits)) {
        struct leat_peer *peer = peer_of(core->output.waits.next);
        promised += room_of(answers_max(core), peer->output.wanted);
        if (used(core) + promised > answers_max(core)) return;
        leat_output_wait_end(peer);
        if (leat_list_empty(&peer->answers))
            leat_list_push_back(&core->answer_peers, &peer->answers);
    }
}

static void close_with_words(struct leat_peer *peer, const char *words)
{
    struct leat_core *core = peer->core;
    leat_diary_summed(&core->closed_sum, leat_core_now(core), LEAT_DIARY_INFO,
                      "%s (%s) %s; connection closed", core->net->peer(peer->conn), peer->name,
                      words);
    core->net->close(peer->conn);
}

/* SUBTLE: whoever takes a byte now and then is not stalled, and eight of them hold all there is. So who holds some
 * while others have no room has LEAT_OUTPUT_OWE_US to take what it owes, or LEAT_OUTPUT_OWE_BYTES of that; then as
 * long again. That it owes at every look says nothing: so do those who take large answers as fast as they come. */
static void owing_tick(struct leat_peer *peer, uint64_t now_us)
{
    const struct leat_net *net = peer->core->net;
    struct leat_output_peer *output = &peer->output;
    uint64_t queued = net->queued_bytes(peer->conn), taken = net->taken_bytes(peer->conn);
    bool holds = queued > 0 && net->copied_bytes(peer->conn) + output->held > 0;
    if (!holds || !peer->core->output.full) {
        output->owes_since_us = 0;
    } else if (output->owes_since_us == 0 || taken >= output->due_bytes) {
        output->owes_since_us = now_us;
        output->due_bytes =
            taken + (queued < LEAT_OUTPUT_OWE_BYTES ? queued : LEAT_OUTPUT_OWE_BYTES);
    } else if (now_us - output->owes_since_us >= LEAT_OUTPUT_OWE_US) {
        close_with_words(peer, "takes its answers too slowly while others have no room for theirs");
    }
}

void leat_output_tick(struct leat_core *core)
{
    uint64_t now_us = leat_core_now(core);
    core->output.full = core->output.refused || !leat_list_empty(&core->output.waits) ||
                        used(core) > answers_max(core);
    core->output.refused = false;
    LEAT_LIST_EACH(&core->owing_peers, link)
    owing_tick(LEAT_CONTAINER(link, struct leat_peer, owing), now_us);
    while (!leat_list_empty(&core->output.waits)) {
        struct leat_peer *peer = peer_of(core->output.waits.next);
        if (now_us - peer->output.waits_since_us < LEAT_OUTPUT_WAIT_US) return;
        leat_output_wait_end(peer);
        close_with_words(peer,
                         "found no room for its answer, which others hold that they do not take");
    }
}
