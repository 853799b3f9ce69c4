/* SPDX-License-Identifier: Apache-2.0 */
/* leat streamlet move, leat stream rebalance: streamlets that are handed to other nodes */
#include "tools/leat/cli.h"
#include "tools/leat/commands.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "wire/message_cluster.h"

enum {
    BODY_BYTES = 1024,
    NODES_MAX = 256,
    STREAMLETS_MAX = 1 << 18,
    BEHIND_TRIES = 100, /* of a move that the leader's tables allow and the owner's do not */
    BEHIND_PAUSE_MS = 20,
};

static const char help[] =
    "Usage: leat streamlet move STREAM STREAMLET NODE\n"
    "\n"
    "Moves one streamlet of a stream to another node. Producers and consumers go on.\n"
    "\n"
    "  -b, --brokers HOST:PORT,...\n";

/* Temporary refusals: a move is under way already, or a leader is being elected. If `known` (by the leader's tables
 * the node takes streamlets), also the refusal of an owner that has not heard of the node yet. */
static int move_one(const char *stream, uint32_t streamlet, const char *node, size_t node_bytes,
                    bool known)
{
    uint8_t bytes[BODY_BYTES];
    struct leat_msg_writer body;
    struct cli_answer answer;
    struct leat_msg_streamlet_move move = {
        {stream, (uint32_t)strnlen(stream, 300)}, streamlet, {node, (uint32_t)node_bytes}};
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_streamlet_move_write(&body, &move);
    /* The asked node may not have heard of a new stream yet. The same connection is used, so the node knows the
     * stream after this answer. */
    int code = cli_stream_ensure(stream, false);
    if (code) return code;
    for (unsigned tries = known ? BEHIND_TRIES : 1; tries > 0; tries--) {
        leat_err rc = cli_call_patiently(LEAT_KIND_STREAMLET_MOVE, &body, &answer);
        if (rc != LEAT_OK && (rc != LEAT_E_NOT_FOUND || tries == 1)) return cli_refused(&answer);
        cli_answer_fini(&answer);
        if (rc == LEAT_OK) break;
        (void)poll(NULL, 0, BEHIND_PAUSE_MS);
    }
    return CLI_OK;
}

int leat_streamlet_main(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    if (argc < 1 || strcmp(argv[0], "move") != 0) {
        if (argc >= 1)
            cli_error("no 'streamlet %s'; did you mean 'streamlet move'?", argv[0]);
        else
            fputs(help, stderr);
        return CLI_USAGE;
    }
    const struct cli_option options[] = {CLI_COMMON};
    int n = cli_parse(argc - 1, argv + 1, options, 1);
    char *end = NULL;
    unsigned long streamlet = n == 3 ? strtoul(argv[2], &end, 10) : 0;
    if (n != 3 || argv[2][0] == '\0' || *end != '\0' || streamlet >= UINT32_MAX) {
        if (n >= 0) cli_error("streamlet move wants STREAM, the streamlet's number, and NODE");
        return CLI_USAGE;
    }
    cli_administer();
    int code = move_one(argv[1], (uint32_t)streamlet, argv[3], strnlen(argv[3], 300), false);
    if (code == CLI_OK)
        printf("stream %s streamlet %lu is node %s's\n", argv[1], streamlet, argv[3]);
    return code;
}

/* ---- rebalance ---- */

struct node {
    struct leat_msg_string name;
    uint64_t incarnation;
    uint32_t streamlets; /* of this stream */
};
struct layout {
    struct cli_answer status, metadata;
    struct node nodes[NODES_MAX]; /* that may have some */
    uint32_t node_count;
    uint64_t *owners; /* by streamlet: incarnation */
    uint32_t streamlet_count;
    char leader[300]; /* where clients find the node that leads the coordinators; "": nobody says */
};

static void layout_fini(struct layout *layout)
{
    cli_answer_fini(&layout->status);
    cli_answer_fini(&layout->metadata);
    free(layout->owners);
    layout->owners = NULL;
}

static leat_err status_ask(struct layout *layout)
{
    uint8_t bytes[8];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 0);
    return cli_call(LEAT_KIND_CLUSTER_STATUS, &body, &layout->status);
}

static int nodes_read(struct layout *layout)
{
    struct leat_msg_reader reader;
    struct leat_msg_cluster head;
    struct leat_msg_voter voter;
    leat_msg_reader_init(&reader, layout->status.bytes, layout->status.count);
    leat_msg_cluster_read(&reader, &head);
    layout->node_count = 0;
    for (uint32_t i = leat_msg_read_array(&reader); !reader.failed && i > 0; i--)
        leat_msg_voter_read(&reader, &voter);
    for (uint32_t i = leat_msg_read_array(&reader); !reader.failed && i > 0; i--) {
        struct leat_msg_cluster_node node;
        leat_msg_cluster_node_read(&reader, &node);
        if (head.leader_address.bytes && node.node_address.bytes == head.leader_address.bytes &&
            memcmp(node.node_address.text, head.leader_address.text, node.node_address.bytes) == 0)
            snprintf(layout->leader, sizeof layout->leader, "%.*s", (int)node.address.bytes,
                     node.address.text);
        if (node.state != 1 || node.draining || layout->node_count == NODES_MAX) continue;
        layout->nodes[layout->node_count++] = (struct node){node.name, node.incarnation, 0};
    }
    if (!reader.failed) return CLI_OK;
    cli_error("the server's answer can't be read: it is of another version");
    return CLI_FAILED;
}

/* SUBTLE: the asked node may lag. (1) A node is undrained through n0. (2) n2 is asked for the plan, and has not heard
 * of the change: the plan leaves that node out. The leader has applied the change, since it was reported as done. If
 * the leader can't be reached the first answer is used. */
static int nodes_get(struct layout *layout)
{
    if (status_ask(layout)) return cli_refused(&layout->status);
    int code = nodes_read(layout);
    if (code != CLI_OK || !layout->leader[0]) return code;
    const char *brokers = cli_brokers;
    cli_disconnect();
    cli_brokers = layout->leader;
    struct cli_answer first = layout->status;
    if (status_ask(layout) == LEAT_OK) {
        cli_answer_fini(&first);
        return nodes_read(layout);
    }
    cli_answer_fini(&layout->status);
    layout->status = first;
    cli_disconnect();
    cli_brokers = brokers;
    return CLI_OK;
}

static void log_read(struct leat_msg_reader *reader, struct layout *layout)
{
    uint32_t fields = leat_msg_read_array(reader);
    uint32_t streamlet = leat_msg_read_u32(reader);
    leat_msg_skip(reader);
    uint64_t owner = leat_msg_read_u64(reader);
    if (fields < 3) reader->failed = true;
    if (reader->failed) return;
    leat_msg_skip_n(reader, fields - 3);
    if (streamlet >= STREAMLETS_MAX) reader->failed = true;
    if (reader->failed) return;
    layout->owners[streamlet] = owner;
    if (streamlet >= layout->streamlet_count) layout->streamlet_count = streamlet + 1;
}

static int owners_get(struct layout *layout, const char *name)
{
    uint8_t bytes[BODY_BYTES];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 2);
    leat_msg_write_array(&body, 1);
    leat_msg_write_string(&body, name, strnlen(name, 300));
    leat_msg_write_bool(&body, false);
    if (cli_call(LEAT_KIND_METADATA, &body, &layout->metadata))
        return cli_refused(&layout->metadata);
    layout->owners = calloc(STREAMLETS_MAX, sizeof *layout->owners);
    if (layout->owners == NULL) {
        cli_error("no memory");
        return CLI_FAILED;
    }
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, layout->metadata.bytes, layout->metadata.count);
    leat_msg_read_array(&reader);
    leat_msg_skip_n(&reader, 2);
    if (leat_msg_read_array(&reader) != 1) reader.failed = true;
    uint32_t fields = leat_msg_read_array(&reader);
    leat_err code = (leat_err)leat_msg_read_u64(&reader);
    if (!reader.failed && code != LEAT_OK) {
        cli_error("stream \"%s\": %s", name, leat_err_text(code));
        return CLI_FAILED;
    }
    if (fields < 5) reader.failed = true;
    leat_msg_skip_n(&reader, 3);
    for (uint32_t i = leat_msg_read_array(&reader); !reader.failed && i > 0; i--)
        log_read(&reader, layout);
    if (!reader.failed) return CLI_OK;
    cli_error("the server's answer can't be read: it is of another version");
    return CLI_FAILED;
}

static struct node *node_of(struct layout *layout, uint64_t incarnation)
{
    for (uint32_t i = 0; i < layout->node_count; i++)
        if (layout->nodes[i].incarnation == incarnation) return &layout->nodes[i];
    return NULL;
}

static struct node *node_least(struct layout *layout)
{
    struct node *least = &layout->nodes[0];
    for (uint32_t i = 1; i < layout->node_count; i++)
        if (layout->nodes[i].streamlets < least->streamlets) least = &layout->nodes[i];
    return least;
}

static int spread(struct layout *layout, const char *name)
{
    uint32_t moved = 0;
    for (uint32_t s = 0; s < layout->streamlet_count; s++) {
        struct node *node = node_of(layout, layout->owners[s]);
        if (node != NULL) node->streamlets++;
    }
    for (uint32_t s = 0; s < layout->streamlet_count; s++) {
        struct node *from = node_of(layout, layout->owners[s]), *to = node_least(layout);
        if (from != NULL && from->streamlets <= to->streamlets + 1) continue;
        int code = move_one(name, s, to->name.text, to->name.bytes, true);
        if (code != CLI_OK) return code;
        if (from != NULL) from->streamlets--;
        to->streamlets++;
        moved++;
    }
    printf("%u of %u streamlet%s moved\n", moved, layout->streamlet_count,
           cli_s(layout->streamlet_count));
    return CLI_OK;
}

int leat_stream_rebalance(int argc, char **argv)
{
    const struct cli_option options[] = {CLI_COMMON};
    int n = cli_parse(argc, argv, options, 1);
    if (n != 1) {
        if (n >= 0) cli_error("stream rebalance wants one stream's NAME");
        return CLI_USAGE;
    }
    static struct layout layout;
    cli_administer();
    int code = nodes_get(&layout);
    if (code == CLI_OK) code = owners_get(&layout, argv[0]);
    if (code == CLI_OK && layout.node_count == 0) {
        cli_error("no node is up that could take a streamlet");
        code = CLI_FAILED;
    }
    if (code == CLI_OK) code = spread(&layout, argv[0]);
    layout_fini(&layout);
    return code;
}
