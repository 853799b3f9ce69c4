/* SPDX-License-Identifier: Apache-2.0 */
/* The choice: a writer port that uses, for each target, the first transport that works. */
#include "replication/transport/data.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"

struct choice_target {
    struct leat_rmem_target target;
    struct leat_transport *transport;
    struct leat_rmem_target *inner; /* NULL: none works */
    const struct leat_rmem_target_handler *handler;
    void *user;
    unsigned node;
    unsigned next_way; /* index into ways[] of what comes after `inner` */
    struct leat_rmem_grant grant;
};

/* Best first. rpc is never chosen: benchmarks name it. */
static const enum leat_rmem_kind ways[] = {LEAT_RMEM_SHM, LEAT_RMEM_VERBS, LEAT_RMEM_TCP};
enum { WAYS = sizeof ways / sizeof ways[0] };

static const struct leat_rmem *port_of(const struct leat_transport *transport,
                                       enum leat_rmem_kind kind)
{
    if (kind == LEAT_RMEM_RPC && !transport->baseline) return NULL;
    if (kind == LEAT_RMEM_TCP || kind == LEAT_RMEM_RPC)
        return transport->links ? &transport->data[kind - LEAT_RMEM_RPC] : NULL;
    for (unsigned i = 0; i < LEAT_ENV_RMEMS; i++)
        if (transport->env->rmems[i] && transport->env->rmems[i]->kind == kind)
            return transport->env->rmems[i];
    return NULL;
}

static struct choice_target *choice_of(struct leat_rmem_target *target)
{
    return LEAT_CONTAINER(target, struct choice_target, target);
}

static void inner_on_attached(void *user, struct leat_rmem_target *inner)
{
    struct choice_target *choice = user;
    choice->target.attached = true;
    choice->target.kind = inner->kind;
    choice->handler->on_attached(choice->user, &choice->target);
}

static leat_err inner_attach(struct choice_target *choice, struct leat_error *error);

static void inner_on_failed(void *user, struct leat_rmem_target *inner,
                            const struct leat_error *error)
{
    struct choice_target *choice = user;
    struct leat_error why = *error;
    if (!choice->target.attached) {
        const struct transport_node *node = leat_transport_node(choice->transport, choice->node);
        leat_node_log_debug("transport %s does not reach node %s: %s",
                            leat_rmem_kind_name(inner->kind), node ? node->name : "of no name",
                            why.text);
        leat_rmem_detach(inner);
        choice->inner = NULL;
        struct leat_error none;
        if (inner_attach(choice, &none) == LEAT_OK) return;
    }
    choice->target.failed = true;
    choice->handler->on_failed(choice->user, &choice->target, &why);
}

static const struct leat_rmem_target_handler inner_handler = {inner_on_attached, inner_on_failed};

static leat_err way_attach(struct choice_target *choice, enum leat_rmem_kind kind,
                           struct leat_error *error)
{
    const struct leat_transport *transport = choice->transport;
    const struct leat_rmem *port = port_of(transport, kind);
    if (!port && kind == LEAT_RMEM_VERBS)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "this node has no RDMA: %.180s",
                              transport->no_verbs);
    if (!port)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "this node has no transport %s",
                              leat_rmem_kind_name(kind));
    return port->attach(port->ctx, choice->node, &choice->grant, &inner_handler, choice,
                        &choice->inner, error);
}

/* By the next way that starts; the error is the last one's. */
static leat_err inner_attach(struct choice_target *choice, struct leat_error *error)
{
    leat_err rc = leat_error_set(error, LEAT_E_UNSUPPORTED, "no transport reaches it");
    if (choice->transport->only != LEAT_RMEM_NONE) {
        if (choice->next_way++ == 0) rc = way_attach(choice, choice->transport->only, error);
        return rc;
    }
    while (rc != LEAT_OK && choice->next_way < WAYS)
        rc = way_attach(choice, ways[choice->next_way++], error);
    return rc;
}

static leat_err choice_attach(void *ctx, unsigned node, const struct leat_rmem_grant *grant,
                              const struct leat_rmem_target_handler *handler, void *user,
                              struct leat_rmem_target **out_target, struct leat_error *error)
{
    struct leat_transport *transport = ctx;
    struct leat_error ignored;
    if (!error) error = &ignored;
    struct choice_target *choice = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *choice);
    if (!choice) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to attach an arena");
    choice->target.port = &transport->writer;
    choice->transport = transport;
    choice->handler = handler;
    choice->user = user;
    choice->node = node;
    choice->grant = *grant;
    leat_err rc = inner_attach(choice, error);
    if (rc)
        leat_mem_free(choice);
    else
        *out_target = &choice->target;
    return rc;
}

static leat_err choice_write(struct leat_rmem_target *target, struct leat_rmem_write *write)
{
    struct choice_target *choice = choice_of(target);
    if (!target->attached || target->failed) return LEAT_E_CLOSED;
    return leat_rmem_write(choice->inner, write);
}

static void choice_detach(struct leat_rmem_target *target)
{
    struct choice_target *choice = choice_of(target);
    if (choice->inner) leat_rmem_detach(choice->inner);
    leat_mem_free(choice);
}

/* Any port's memory is good for all; the first refusal counts. */
static leat_err choice_source(void *ctx, void *base, size_t bytes, struct leat_error *error)
{
    struct leat_transport *transport = ctx;
    for (unsigned i = 0; i < LEAT_ENV_RMEMS; i++) {
        const struct leat_rmem *port = transport->env->rmems[i];
        if (!port || !port->source) continue;
        leat_err rc = port->source(port->ctx, base, bytes, error);
        if (rc) return rc;
    }
    return LEAT_OK;
}

/* ---- life ---- */

leat_err leat_transport_create(const struct leat_transport_options *options,
                               struct leat_transport **out_transport, struct leat_error *error)
{
    struct leat_transport *transport = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *transport);
    if (!transport) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the transports");
    transport->env = options->env;
    transport->links = options->links;
    transport->baseline = options->baseline;
    transport->only = options->only;
    snprintf(transport->no_verbs, sizeof transport->no_verbs, "%s",
             options->no_verbs ? options->no_verbs : "no device");
    transport->writer = (struct leat_rmem){
        .ctx = transport,
        .kind = options->only,
        .attach = choice_attach,
        .write = choice_write,
        .detach = choice_detach,
        .source = choice_source,
    };
    leat_transport_data_init(transport);
    if (options->only != LEAT_RMEM_NONE && !port_of(transport, options->only)) {
        bool verbs = options->only == LEAT_RMEM_VERBS;
        leat_error_set(error, LEAT_E_CONFIG, "replication by %s does not work on this node%s%.160s",
                       leat_rmem_kind_name(options->only), verbs ? ": " : "",
                       verbs ? transport->no_verbs : "");
        leat_mem_free(transport);
        return LEAT_E_CONFIG;
    }
    *out_transport = transport;
    return LEAT_OK;
}

void leat_transport_destroy(struct leat_transport **transport_pointer)
{
    struct leat_transport *transport = *transport_pointer;
    if (!transport) return;
    *transport_pointer = NULL;
    for (unsigned i = 0; i < LEAT_TRANSPORT_NODES_MAX; i++)
        if (transport->nodes[i]) leat_transport_node_free(transport->nodes[i]);
    leat_mem_free(transport);
}

const struct leat_rmem *leat_transport_writer(const struct leat_transport *transport)
{
    return &transport->writer;
}

leat_err leat_transport_node_set(struct leat_transport *transport, unsigned node_number,
                                 const char *name, const char *address, uint64_t incarnation)
{
    if (node_number >= LEAT_TRANSPORT_NODES_MAX) return LEAT_E_INVALID;
    struct transport_node *node = transport->nodes[node_number];
    if (strlen(name) >= sizeof node->name || strlen(address) >= sizeof node->address)
        return LEAT_E_INVALID;
    if (!node) {
        if (incarnation == 0) return LEAT_OK;
        node = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *node);
        if (!node) return LEAT_E_NO_MEMORY;
        node->transport = transport;
        leat_list_init(&node->targets);
        transport->nodes[node_number] = node;
    }
    bool same = node->incarnation == incarnation && strcmp(node->name, name) == 0 &&
                strcmp(node->address, address) == 0;
    if (same) return LEAT_OK;
    leat_transport_node_drop(node);
    snprintf(node->name, sizeof node->name, "%s", name);
    snprintf(node->address, sizeof node->address, "%s", address);
    node->incarnation = incarnation;
    return LEAT_OK;
}
