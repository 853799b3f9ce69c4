/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that find their way, and metadata. */
#include "internal.h"

#include "base/address.h"
#include "base/assert.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

uint64_t leat_client_now(const struct leat_client *client)
{
    return client->env->clock->now_us(client->env->clock->ctx);
}

static void sweep_on_expired(struct leat_timer *timer);

enum { LOCAL_PATH_BYTES_MAX = 107 }; /* the kernel's */

/* "unix:PATH" */
static bool is_local(const char *address)
{
    return strncmp(address, "unix:", 5) == 0;
}

static bool address_is_sane(const char *text, size_t bytes)
{
    struct leat_address_parts parts;
    if (is_local(text)) return bytes > 5 && bytes <= 5 + LOCAL_PATH_BYTES_MAX;
    return leat_address_split(text, bytes, &parts) && parts.host_bytes > 0 && parts.port > 0;
}

/* "a:1,b:2" -> addresses. Blanks around an address are dropped. */
static leat_err addresses_parse(struct leat_client *client, const char *text,
                                struct leat_error *error)
{
    while (*text) {
        size_t bytes = strcspn(text, ",");
        const char *next = text[bytes] ? text + bytes + 1 : text + bytes;
        while (bytes && *text == ' ') {
            text++;
            bytes--;
        }
        while (bytes && text[bytes - 1] == ' ')
            bytes--;
        if (bytes >= LEAT_CLIENT_ADDRESS_BYTES || !address_is_sane(text, bytes))
            return leat_error_set(
                error, LEAT_E_CONFIG,
                "'%.*s' is not a broker's address; write HOST:PORT or [IPV6]:PORT, "
                "with a port of 1 to 65535, or unix:PATH of at most 107 bytes",
                (int)(bytes > 60 ? 60 : bytes), text);
        if (client->address_count == LEAT_CLIENT_ADDRESSES_MAX)
            return leat_error_set(error, LEAT_E_TOO_MANY, "more than %d broker addresses",
                                  LEAT_CLIENT_ADDRESSES_MAX);
        memcpy(client->addresses[client->address_count], text, bytes);
        client->addresses[client->address_count++][bytes] = 0;
        text = next;
    }
    if (!client->address_count)
        return leat_error_set(error, LEAT_E_CONFIG, "no broker address given");
    return LEAT_OK;
}

leat_err leat_client_create(const struct leat_env *env, struct leat_timers *timers,
                            const struct leat_client_options *options,
                            struct leat_client **out_client, struct leat_error *error)
{
    LEAT_ASSERT(env && timers && options && options->streams_max > 0);
    LEAT_ASSERT(options->request_timeout_us > 0 && options->retry_us_min > 0);
    struct leat_client *client = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *client);
    if (!client) return leat_error_set(error, LEAT_E_NO_MEMORY, "out of memory");
    client->env = env;
    client->timers = timers;
    client->options = *options;
    leat_list_init(&client->conns);
    leat_list_init(&client->waiting);
    leat_list_init(&client->lookups);
    client->nearest_us = UINT64_MAX;
    client->sweep.on_expired = sweep_on_expired;
    client->sweep.owner = client;
    leat_client_watch_init(client);
    snprintf(client->name, sizeof client->name, "%s", options->name ? options->name : "libleat");
    leat_err rc = addresses_parse(client, options->addresses, error);
    if (rc) {
        leat_mem_free(client);
        return rc;
    }
    /* Clients started together should not all try the same node first. */
    client->next_address = (uint32_t)(env->random->next(env->random->ctx) % client->address_count);
    *out_client = client;
    return LEAT_OK;
}

static void list_cancel(struct leat_list *requests)
{
    struct leat_error error;
    (void)leat_error_set(&error, LEAT_E_CANCELLED, "the client was closed");
    struct leat_list *link;
    while ((link = leat_list_pop_front(requests)))
        leat_client_request_done(LEAT_CONTAINER(link, struct leat_request, link), LEAT_E_CANCELLED,
                                 NULL, &error);
}

void leat_client_destroy(struct leat_client **client_ref)
{
    struct leat_client *client = *client_ref;
    if (!client) return;
    LEAT_ASSERT_OWNER(client->options.actor);
    *client_ref = NULL;
    leat_timer_stop(client->timers, &client->sweep);
    leat_timer_stop(client->timers, &client->watch);
    struct leat_list *link;
    struct leat_list lookups;
    leat_list_init(&lookups);
    while ((link = leat_list_pop_front(&client->lookups)))
        leat_list_push_back(&lookups, link);
    /* A lookup's request must not find it any more. */
    LEAT_LIST_EACH(&lookups, it)
    LEAT_CONTAINER(it, struct leat_client_lookup, link)->request.on_done = NULL;
    list_cancel(&client->waiting);
    while (!leat_list_empty(&client->conns)) {
        struct leat_client_conn *conn =
            LEAT_CONTAINER(client->conns.next, struct leat_client_conn, link);
        list_cancel(&conn->in_flight);
        list_cancel(&conn->queued);
        leat_client_conn_destroy(conn);
    }
    struct leat_error error;
    (void)leat_error_set(&error, LEAT_E_CANCELLED, "the client was closed");
    while ((link = leat_list_pop_front(&lookups))) {
        struct leat_client_lookup *lookup = LEAT_CONTAINER(link, struct leat_client_lookup, link);
        lookup->on_done(lookup, LEAT_E_CANCELLED, NULL, &error);
    }
    for (uint32_t i = 0; i < client->stream_count; i++) {
        leat_mem_free(client->streams[i]->logs);
        leat_mem_free(client->streams[i]);
    }
    leat_mem_free(client->streams);
    leat_mem_free(client);
}

/* SUBTLE: if the pause doubled with each retry, it would be 160 or 320 ms when a new owner takes over within 200 ms:
 * this pause was most of the delay that producers saw. So at first the pause doubles with every tenth retry: the
 * first second has some forty retries. */
uint64_t leat_client_retry_pause_us(const struct leat_client *client, uint32_t attempt)
{
    uint64_t pause = client->options.retry_us_min, most = client->options.retry_us_max;
    for (uint32_t i = 1; i <= attempt && pause < most; i++)
        if (i % 10 == 0 || i > LEAT_CLIENT_QUICK_RETRIES) pause *= 2;
    return pause < most ? pause : most;
}

uint64_t leat_client_pause_us(struct leat_client *client, uint32_t attempt)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    uint64_t pause = leat_client_retry_pause_us(client, attempt);
    const struct leat_random *random = client->env->random;
    return pause - random->next(random->ctx) % (pause / 2 + 1);
}

/* ---- requests ---- */

void leat_client_request_done(struct leat_request *request, leat_err rc,
                              const struct leat_frame *answer, const struct leat_error *error)
{
    if (request->on_done) request->on_done(request, rc, answer, error);
}

static const struct leat_client_log *log_find(const struct leat_client *client,
                                              struct leat_log_ref ref)
{
    for (uint32_t i = 0; i < client->stream_count; i++) {
        const struct leat_client_stream *stream = client->streams[i];
        if (stream->id != ref.stream) continue;
        uint64_t at = (uint64_t)ref.streamlet * stream->settings.logs + ref.log;
        if (ref.log >= stream->settings.logs || at >= stream->log_count) return NULL;
        return &stream->logs[at];
    }
    return NULL;
}

/* The address of a node. The address of an open connection to the incarnation wins over the address in metadata: the
 * node may listen on a wildcard address, or its address may be translated (NAT). */
static const char *node_address(const struct leat_client *client, uint64_t incarnation)
{
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        if (conn->incarnation == incarnation && conn->state == CONN_OPEN) return conn->address;
    }
    for (uint32_t i = 0; i < client->node_count; i++)
        if (client->nodes[i].incarnation == incarnation)
            return client->nodes[i].address[0] ? client->nodes[i].address : NULL;
    return NULL;
}

static leat_err send_failed(struct leat_client *client, leat_err rc)
{
    snprintf(client->why, sizeof client->why, "%s", leat_err_text(rc));
    return rc;
}

static leat_err owner_unreachable(struct leat_client *client, const struct leat_client_log *log)
{
    const char *name = NULL;
    for (uint32_t i = 0; i < client->node_count; i++)
        if (client->nodes[i].incarnation == log->owner) name = client->nodes[i].name;
    if (name)
        snprintf(client->why, sizeof client->why,
                 "node %s, which serves it, is down: waiting for it", name);
    else
        snprintf(client->why, sizeof client->why,
                 "its owner (incarnation %llu) is no node that the others know an address of: they "
                 "are asked again",
                 (unsigned long long)log->owner);
    return LEAT_E_NOT_OWNER;
}

const char *leat_client_why(const struct leat_client *client)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    return client->why;
}

static void request_place(struct leat_client_conn *conn, struct leat_request *request)
{
    if (conn->state == CONN_OPEN)
        leat_client_conn_transmit(conn, request);
    else
        leat_list_push_back(&conn->queued, &request->link);
}

leat_err leat_client_send(struct leat_client *client, struct leat_request *request)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    LEAT_ASSERT(request->on_done && request->payload_count <= LEAT_CLIENT_PAYLOADS_MAX);
    if (request->control_bytes > LEAT_CONTROL_BYTES_MAX)
        return send_failed(client, LEAT_E_TOO_LARGE);
    uint64_t timeout =
        request->timeout_us ? request->timeout_us : client->options.request_timeout_us;
    request->sent_us = leat_client_now(client);
    request->deadline_us = request->sent_us + timeout;
    if (request->patience_us == 0) request->patience_us = LEAT_CLIENT_SILENT_US;
    request->sent = request->timed_out = false;
    if (request->deadline_us < client->nearest_us) client->nearest_us = request->deadline_us;
    if (request->log.stream == 0) {
        struct leat_client_conn *conn = leat_client_conn_any_open(client);
        if (conn)
            leat_client_conn_transmit(conn, request);
        else
            leat_list_push_back(&client->waiting, &request->link);
        client->dirty = true;
        return LEAT_OK;
    }
    const struct leat_client_log *log = log_find(client, request->log);
    if (!log) return send_failed(client, LEAT_E_UNKNOWN_STREAM);
    struct leat_client_conn *conn = leat_client_conn_find(client, log->owner, log->lane);
    if (!conn) {
        const char *address = node_address(client, log->owner);
        if (!address) return owner_unreachable(client, log);
        conn = leat_client_conn_make(client, address, log->owner, log->lane);
        if (!conn) return send_failed(client, LEAT_E_NO_MEMORY);
        leat_err rc = leat_client_conn_start(conn);
        if (rc) return send_failed(client, rc);
    }
    request_place(conn, request);
    return LEAT_OK;
}

void leat_client_cancel(struct leat_client *client, struct leat_request *request)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    (void)client;
    LEAT_ASSERT(request->payload_count == 0);
    leat_list_remove(&request->link);
}

bool leat_client_withdraw(struct leat_client *client, struct leat_request *request)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        if (!request->payload_count || !request->sent || conn->slots_out == 0) continue;
        LEAT_LIST_EACH(&conn->in_flight, it)
        {
            if (it != &request->link) continue;
            leat_client_conn_cut(conn);
            return false;
        }
    }
    leat_list_remove(&request->link);
    return true;
}

void leat_client_on_open(struct leat_client *client, struct leat_client_conn *conn)
{
    client->refused_in_a_row = 0;
    client->bootstrap_at_us = 0;
    struct leat_list *link;
    while (conn->state == CONN_OPEN && (link = leat_list_pop_front(&client->waiting)))
        leat_client_conn_transmit(conn, LEAT_CONTAINER(link, struct leat_request, link));
}

static const char *refusal_text(const struct leat_client *client)
{
    leat_err why = client->refused_why;
    if (client->refused_text[0]) return client->refused_text;
    return why == LEAT_OK || why == LEAT_E_CLOSED ? "connection refused or closed"
                                                  : leat_err_text(why);
}

void leat_client_on_lost(struct leat_client *client, const char *address, const char *said,
                         bool was_up, leat_err why)
{
    client->bootstrap_at_us =
        leat_client_now(client) +
        leat_client_pause_us(client, client->refused_in_a_row / client->address_count);
    client->dirty = true;
    if (was_up) return;
    client->refused_in_a_row++;
    client->refused_why = why;
    snprintf(client->refused_text, sizeof client->refused_text, "%s", said);
    snprintf(client->last_text, sizeof client->last_text, "no server answers at %s (%s)", address,
             refusal_text(client));
}

/* The text names all given addresses, as far as there is room. */
static void give_up_text(const struct leat_client *client, char out[LEAT_ERROR_TEXT_BYTES])
{
    const char *why = refusal_text(client);
    size_t used = (size_t)snprintf(out, LEAT_ERROR_TEXT_BYTES, "no server answers at ");
    size_t room = LEAT_ERROR_TEXT_BYTES - strlen(" and others (the last: )") - strlen(why) - 1;
    uint32_t i = 0;
    for (; i < client->address_count; i++) {
        const char *address = client->addresses[i];
        if (used + strlen(", ") + strlen(address) > room) break;
        used += (size_t)snprintf(out + used, LEAT_ERROR_TEXT_BYTES - used, "%s%s", i ? ", " : "",
                                 address);
    }
    snprintf(out + used, LEAT_ERROR_TEXT_BYTES - used, "%s (the last: %s)",
             i < client->address_count ? " and others" : "", why);
}

/* ---- the sweep: time limits, and a connection for requests to any node ---- */

static void conn_expire(struct leat_client *client, struct leat_client_conn *conn, uint64_t now,
                        uint64_t *nearest)
{
    /* An address may give no answer at all, not even "refused": the kernel would try for two minutes, and meanwhile
     * no other address is tried. */
    bool opening = conn->state == CONN_CONNECTING || conn->state == CONN_HELLO;
    bool expired = opening && conn->open_before_us <= now;
    if (opening && !expired && conn->open_before_us < *nearest) *nearest = conn->open_before_us;
    struct leat_list *lists[2] = {&conn->in_flight, &conn->queued};
    for (int i = 0; i < 2; i++) {
        LEAT_LIST_EACH(lists[i], link)
        {
            struct leat_request *request = LEAT_CONTAINER(link, struct leat_request, link);
            if (request->deadline_us <= now)
                request->timed_out = expired = true;
            else if (request->deadline_us < *nearest)
                *nearest = request->deadline_us;
        }
    }
    if (expired) leat_client_conn_cut(conn);
}

static void waiting_expire(struct leat_client *client, uint64_t now, uint64_t *nearest)
{
    bool give_up = client->options.fail_fast && client->refused_in_a_row >= client->address_count;
    struct leat_list expired;
    leat_list_init(&expired);
    LEAT_LIST_EACH(&client->waiting, link)
    {
        struct leat_request *request = LEAT_CONTAINER(link, struct leat_request, link);
        if (request->deadline_us <= now || give_up) {
            leat_list_remove(link);
            leat_list_push_back(&expired, link);
        } else if (request->deadline_us < *nearest) {
            *nearest = request->deadline_us;
        }
    }
    if (give_up) client->refused_in_a_row = 0;
    if (leat_list_empty(&expired)) return;
    struct leat_error error;
    leat_err code = give_up ? LEAT_E_CLOSED : LEAT_E_TIMEOUT;
    if (give_up && client->address_count > 1) give_up_text(client, client->last_text);
    (void)leat_error_set(&error, code, "%s",
                         client->last_text[0] ? client->last_text : leat_err_text(code));
    /* SUBTLE: the owners hear of a failed request after their own turn end has run, so their next steps have no
     * timer; without another turn a consumer waited for ever. */
    *nearest = now;
    struct leat_list *link;
    while ((link = leat_list_pop_front(&expired)))
        leat_client_request_done(LEAT_CONTAINER(link, struct leat_request, link), code, NULL,
                                 &error);
}

/* Candidate i: the given addresses, then the addresses of nodes that are up. But a Unix socket also tells the server
 * the client's account: connections to other nodes, or to this node's port, do not. */
static const char *candidate(const struct leat_client *client, uint32_t i)
{
    if (i < client->address_count) return client->addresses[i];
    if (is_local(client->addresses[0])) return NULL;
    const char *address = client->nodes[i - client->address_count].address;
    bool wildcard = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
    /* a wildcard address would mean this machine */
    return address[0] && !wildcard ? address : NULL;
}

bool leat_client_elsewhere(const struct leat_client *client, const char *address)
{
    for (uint32_t i = 0; i < client->address_count + client->node_count; i++) {
        const char *other = candidate(client, i);
        if (other && strcmp(other, address) != 0) return true;
    }
    return false;
}

/* A node of this address is silent, or doubted. */
static bool address_suspect(const struct leat_client *client, const char *address)
{
    LEAT_LIST_EACH(&client->conns, link)
    {
        const struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        bool passed_over = conn->suspect || conn->doubted;
        if (passed_over && strcmp(conn->address, address) == 0) return true;
    }
    return false;
}

const char *leat_client_bootstrap_next(struct leat_client *client)
{
    uint32_t count = client->address_count + client->node_count;
    for (uint32_t i = 0; i < count; i++) {
        const char *address = candidate(client, (client->next_address + i) % count);
        if (!address || address_suspect(client, address)) continue;
        client->next_address = (client->next_address + i) % count;
        return address;
    }
    return NULL;
}

static void bootstrap(struct leat_client *client, uint64_t now, uint64_t *nearest)
{
    struct leat_client_conn *open = leat_client_conn_any_open(client);
    while (open && open->state == CONN_OPEN && !leat_list_empty(&client->waiting))
        leat_client_conn_transmit(
            open, LEAT_CONTAINER(leat_list_pop_front(&client->waiting), struct leat_request, link));
    if (leat_list_empty(&client->waiting)) return;
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        /* This connection opens, or its loss or its silence causes the next call. */
        if (conn->state != CONN_CLOSING && !conn->suspect && !conn->doubted) return;
    }
    const char *address = leat_client_bootstrap_next(client);
    if (!address) return; /* all are silent: a connection will be lost, or heard, in time */
    if (now < client->bootstrap_at_us) {
        if (client->bootstrap_at_us < *nearest) *nearest = client->bootstrap_at_us;
        return;
    }
    client->next_address++;
    struct leat_client_conn *conn =
        leat_client_conn_make(client, address, CLIENT_NO_INCARNATION, CLIENT_LANE_ANY);
    leat_err rc = conn ? leat_client_conn_start(conn) : LEAT_E_NO_MEMORY;
    if (rc) {
        leat_client_on_lost(client, address, "", false, rc);
        if (client->bootstrap_at_us < *nearest) *nearest = client->bootstrap_at_us;
    }
}

static void sweep(struct leat_client *client)
{
    uint64_t now = leat_client_now(client), nearest = UINT64_MAX;
    client->dirty = false;
    leat_client_lookups_retry(client, now, &nearest);
    LEAT_LIST_EACH(&client->conns, link)
    conn_expire(client, LEAT_CONTAINER(link, struct leat_client_conn, link), now, &nearest);
    waiting_expire(client, now, &nearest);
    bootstrap(client, now, &nearest);
    /* Connections that this very sweep has begun. */
    if (client->nearest_us < nearest) nearest = client->nearest_us;
    client->nearest_us = UINT64_MAX;
    if (nearest == UINT64_MAX) {
        leat_timer_stop(client->timers, &client->sweep);
        return;
    }
    leat_timer_start(client->timers, &client->sweep, nearest > now ? nearest - now : 0);
}

static void sweep_on_expired(struct leat_timer *timer)
{
    ((struct leat_client *)timer->owner)->dirty = true;
}

/* Only a deadline before the armed time needs the whole walk: appends of a busy producer all have
 * the same time limit, so their turns end here without looking at any of them. */
void leat_client_on_turn_end(struct leat_client *client)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    if (leat_timer_armed(&client->sweep) && client->nearest_us < client->sweep.at_us)
        client->dirty = true;
    if (!leat_timer_armed(&client->sweep) && client->nearest_us != UINT64_MAX) client->dirty = true;
    client->nearest_us = UINT64_MAX;
    if (client->dirty) sweep(client);
}

bool leat_client_take_called(struct leat_client *client)
{
    LEAT_ASSERT_OWNER(client->options.actor);
    bool called = client->called;
    client->called = false;
    return called;
}
