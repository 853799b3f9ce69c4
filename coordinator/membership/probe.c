/* SPDX-License-Identifier: Apache-2.0 */
/* Trying an address: does a process still listen there? */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/peers.h"

/* SUBTLE: one try is not enough. A process that is being killed closes its sockets in turn, and may close the
 * listening socket last:
 *  1. The connection to the process breaks. This node tries the address.
 *  2. The listening socket still accepts the connection.
 *  3. The process is gone a millisecond later, and only silence would show this, 160 ms later.
 * So a probe that was taken is tried again a few times, as long as nothing is heard of the node. */

enum {
    PROBE_TRIES = 10,
    PROBE_AGAIN_US = 2 * 1000,
    PROBE_AGAIN_US_MAX = 20 * 1000,
    PROBE_US_MAX = 1000 * 1000
};

struct probe {
    struct leat_list list;
    struct leat_coordinator *coordinator; /* NULL: the coordinator has closed */
    struct leat_conn *conn;               /* NULL: the probe waits until again_us */
    uint64_t incarnation, voter_id, since_us, again_us;
    unsigned tries;
    bool opened;
    char address[LEAT_ADDRESS_BYTES_MAX + 1];
};

static void probe_on_open(void *user, struct leat_conn *conn)
{
    struct probe *probe = user;
    probe->opened = true;
    if (probe->coordinator) probe->coordinator->env->net->close(conn);
}

static size_t probe_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                             size_t *want_bytes)
{
    (void)user;
    (void)conn;
    (void)data;
    *want_bytes = 0;
    return bytes;
}

static void probe_end(struct probe *probe)
{
    leat_list_remove(&probe->list);
    probe->coordinator->detect.probe_count--;
    leat_mem_free(probe);
}

/* Whether nothing is heard yet of the probed node. */
static bool probe_matters(struct leat_coordinator *coordinator, const struct probe *probe)
{
    if (probe->voter_id != 0 && probe->voter_id == coordinator->detect.leader &&
        !co_peer_of_voter(coordinator, probe->voter_id))
        return true;
    return probe->incarnation != 0 && co_leads(coordinator) &&
           !co_peer_of_incarnation(coordinator, probe->incarnation);
}

static void probe_rest(struct probe *probe)
{
    struct leat_coordinator *coordinator = probe->coordinator;
    struct leat_timer *timer = &coordinator->detect.again;
    uint64_t pause_us = (uint64_t)PROBE_AGAIN_US << probe->tries++;
    if (pause_us > PROBE_AGAIN_US_MAX) pause_us = PROBE_AGAIN_US_MAX;
    probe->conn = NULL;
    probe->again_us = co_now(coordinator) + pause_us;
    if (!leat_timer_armed(timer) || timer->at_us > probe->again_us)
        leat_timer_start(&coordinator->timers, timer, pause_us);
}

static void probe_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct probe *probe = user;
    struct leat_coordinator *coordinator = probe->coordinator;
    (void)conn;
    if (!coordinator) {
        leat_mem_free(probe);
        return;
    }
    /* A close by this node (LEAT_OK) says nothing, nor does an error of this node's machine. */
    if (!probe->opened && why == LEAT_E_CLOSED) {
        uint64_t incarnation = probe->incarnation, voter_id = probe->voter_id;
        probe_end(probe);
        co_detect_refused(coordinator, incarnation, voter_id);
    } else if (probe->opened && probe->tries < PROBE_TRIES && probe_matters(coordinator, probe)) {
        probe_rest(probe);
    } else {
        probe_end(probe);
    }
}

static const struct leat_conn_handler probe_handler = {probe_on_open, probe_on_bytes,
                                                       probe_on_closed};

static void probe_connect(struct probe *probe)
{
    struct leat_coordinator *coordinator = probe->coordinator;
    const struct leat_net *net = coordinator->env->net;
    probe->since_us = co_now(coordinator);
    probe->opened = false;
    if (net->connect(net->ctx, probe->address, &probe_handler, probe, &probe->conn) != LEAT_OK)
        probe_end(probe);
}

void co_probe_start(struct leat_coordinator *coordinator, const char *address, uint64_t incarnation,
                    uint64_t voter_id)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_detect *it = &coordinator->detect;
    if (!strchr(address, ':') || it->probe_count == CO_PROBES_MAX) return;
    struct probe *probe = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *probe);
    if (!probe) return;
    probe->coordinator = coordinator;
    probe->incarnation = incarnation;
    probe->voter_id = voter_id;
    snprintf(probe->address, sizeof probe->address, "%s", address);
    it->probe_count++;
    leat_list_push_back(&it->probes, &probe->list);
    probe_connect(probe);
}

static void probes_again(struct leat_timer *timer)
{
    struct leat_coordinator *coordinator = timer->owner;
    uint64_t now_us = co_now(coordinator), next_us = UINT64_MAX;
    LEAT_LIST_EACH(&coordinator->detect.probes, at)
    {
        struct probe *probe = LEAT_CONTAINER(at, struct probe, list);
        if (probe->conn) continue;
        if (probe->again_us > now_us) {
            if (probe->again_us < next_us) next_us = probe->again_us;
        } else if (probe_matters(coordinator, probe)) {
            probe_connect(probe);
        } else {
            probe_end(probe);
        }
    }
    if (next_us != UINT64_MAX) leat_timer_start(&coordinator->timers, timer, next_us - now_us);
}

void co_probes_expire(struct leat_coordinator *coordinator, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(coordinator);
    LEAT_LIST_EACH(&coordinator->detect.probes, at)
    {
        struct probe *probe = LEAT_CONTAINER(at, struct probe, list);
        if (probe->conn && now_us > probe->since_us + PROBE_US_MAX) {
            probe->since_us = UINT64_MAX - PROBE_US_MAX; /* once */
            coordinator->env->net->close(probe->conn);
        }
    }
}

void co_probes_init(struct leat_coordinator *coordinator)
{
    struct co_detect *it = &coordinator->detect;
    leat_list_init(&it->probes);
    it->again = (struct leat_timer){.on_expired = probes_again, .owner = coordinator};
}

void co_probes_fini(struct leat_coordinator *coordinator)
{
    struct leat_list *at;
    while ((at = leat_list_pop_front(&coordinator->detect.probes))) {
        struct probe *probe = LEAT_CONTAINER(at, struct probe, list);
        probe->coordinator = NULL;
        if (probe->conn)
            coordinator->env->net->close(probe->conn); /* frees it, later */
        else
            leat_mem_free(probe);
    }
}
