/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on links of purpose LEAT_LINK_DATA, and what the writer's files share. Private.
 *
 * The control bodies are fixed structs, little-endian; the payload of WRITE and REQUEST is the
 * bytes. docs/cluster-protocol.md shows them among the other messages.
 */
#ifndef LEAT_REPLICATION_TRANSPORT_DATA_H
#define LEAT_REPLICATION_TRANSPORT_DATA_H

#include "replication/transport/transport.h"

enum leat_data_kind {
    LEAT_DATA_ATTACH = LEAT_NODE_KIND_REPLICATION + 56, /* control: leat_rmem_address; an answer:
                                                           writes will be taken */
    LEAT_DATA_WRITE,   /* control: leat_data_write; no answer of its own */
    LEAT_DATA_DONE,    /* to the writer. control: leat_data_done: all writes up to one */
    LEAT_DATA_REQUEST, /* control: leat_data_write; each is answered: transport rpc */
};

struct leat_data_write {
    struct leat_rmem_address address;
    uint64_t offset;
    uint64_t number; /* counts from 1 for each target */
    uint32_t target; /* the writer's name for its target */
    uint32_t zero;
};
_Static_assert(sizeof(struct leat_data_write) == 56, "layout");

struct leat_data_done {
    uint64_t number; /* this write and all before are in place; with rc: this write is not */
    uint32_t target;
    uint32_t rc;
};
_Static_assert(sizeof(struct leat_data_done) == 16, "layout");

struct transport_node;

/* One write under way on a link. */
struct data_slot {
    struct leat_link_call call;
    struct leat_data_write control;
    struct leat_rmem_write *write;
    bool sent, done; /* sent: its bytes are ours no more; done: rc is known */
    leat_err rc;
};

struct data_target {
    struct leat_rmem_target target;
    struct leat_transport *transport;
    struct transport_node *node;
    struct leat_list link; /* of the node */
    const struct leat_rmem_target_handler *handler;
    void *user;
    struct leat_rmem_address address;
    uint32_t number; /* names it to the peer */
    bool attaching, detached, told, mailed;
    leat_err first_rc;       /* of the first write that did not count */
    struct leat_error error; /* why it fails; code 0: it does not */
    struct leat_link_call attach_call;
    struct leat_mail mail;
    struct leat_list waiting;
    uint64_t posted, ended; /* numbers of the last; the slots hold those in between */
    struct data_slot slots[LEAT_RMEM_WINDOW];
};

struct transport_node {
    struct leat_transport *transport;
    char name[LEAT_LINK_NODE_NAME_BYTES_MAX + 1];
    char address[LEAT_LINK_ADDRESS_BYTES_MAX + 1];
    uint64_t incarnation;
    struct leat_link *link; /* NULL: not needed yet */
    struct leat_link_handler handler;
    struct leat_list targets;
};

/* A transport that a target of the choice can use. */
struct leat_transport {
    const struct leat_env *env;
    struct leat_links *links;
    const struct leat_transport_baseline *baseline;
    enum leat_rmem_kind only;
    char no_verbs[LEAT_ERROR_TEXT_BYTES];
    struct leat_rmem writer;  /* the choice */
    struct leat_rmem data[2]; /* rpc, tcp */
    uint32_t next_target;
    unsigned target_count;
    struct transport_node *nodes[LEAT_TRANSPORT_NODES_MAX];
};

/** NULL: the node's address is unknown. */
static inline struct transport_node *leat_transport_node(const struct leat_transport *transport,
                                                         unsigned number)
{
    return number < LEAT_TRANSPORT_NODES_MAX ? transport->nodes[number] : NULL;
}

/* link.c */
void leat_transport_data_init(struct leat_transport *transport);
void leat_transport_node_drop(struct transport_node *node); /* its link goes, its targets fail */
void leat_transport_node_free(struct transport_node *node); /* nothing runs any more */

#endif
