/* SPDX-License-Identifier: Apache-2.0 */
#include "client/probe.h"

#include "client/internal.h"

/* Of the connections in front of it, and it: so many lead to the same lane. */
static unsigned alike(const struct leat_client *client, const struct leat_client_conn *conn)
{
    unsigned count = 0;
    LEAT_LIST_EACH(&client->conns, link)
    {
        const struct leat_client_conn *other =
            LEAT_CONTAINER(link, const struct leat_client_conn, link);
        if (other->state == CONN_OPEN && other->incarnation == conn->incarnation &&
            other->lane == conn->lane)
            count++;
        if (other == conn) break;
    }
    return count;
}

unsigned leat_client_conns_alike(const struct leat_client *client, int64_t *out_lane)
{
    unsigned most = 0;
    LEAT_LIST_EACH(&client->conns, link)
    {
        const struct leat_client_conn *conn =
            LEAT_CONTAINER(link, const struct leat_client_conn, link);
        unsigned count = conn->state == CONN_OPEN ? alike(client, conn) : 0;
        if (count <= most) continue;
        most = count;
        *out_lane = conn->lane;
    }
    return most;
}

uint64_t leat_client_lookup_late_us(const struct leat_client *client, uint64_t now_us)
{
    uint64_t most = 0;
    LEAT_LIST_EACH(&client->lookups, link)
    {
        const struct leat_client_lookup *lookup =
            LEAT_CONTAINER(link, const struct leat_client_lookup, link);
        uint64_t due = lookup->request.sent_us + client->options.request_timeout_us;
        if (lookup->retry_at_us || !lookup->request.sent || client->options.fail_fast) continue;
        if (now_us > due && now_us - due > most) most = now_us - due;
    }
    return most;
}
