/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes of a cluster did during a benchmark: CPU by role, replication's accounts. */
#include "tools/bench/report.h"

#include "base/rmem.h"
#include "wire/message_cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_UP = 1 };

static int node_add(struct bench_nodes *nodes, const struct leat_msg_cluster_node *row)
{
    if (row->state != NODE_UP) return CLI_OK;
    if (nodes->count == BENCH_NODES_MAX || row->address.bytes >= sizeof nodes->rows[0].address ||
        row->name.bytes >= sizeof nodes->rows[0].name) {
        cli_error("a cluster of more than %d nodes, or of longer names, is not measured",
                  BENCH_NODES_MAX);
        return CLI_FAILED;
    }
    struct bench_node *node = &nodes->rows[nodes->count++];
    memset(node, 0, sizeof *node);
    memcpy(node->name, row->name.text, row->name.bytes);
    memcpy(node->address, row->address.text, row->address.bytes);
    return CLI_OK;
}

int bench_nodes_find(struct bench_nodes *nodes)
{
    uint8_t bytes[8];
    struct leat_msg_writer body;
    struct cli_answer answer;
    struct leat_msg_reader reader;
    struct leat_msg_cluster head;
    int code = CLI_OK;
    nodes->count = 0;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 0);
    if (cli_call(LEAT_KIND_CLUSTER_STATUS, &body, &answer)) return cli_refused(&answer);
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    leat_msg_cluster_read(&reader, &head);
    uint32_t voters = leat_msg_read_array(&reader);
    if (!reader.failed) leat_msg_skip_n(&reader, voters);
    uint32_t count = leat_msg_read_array(&reader);
    for (uint32_t i = 0; !reader.failed && code == CLI_OK && i < count; i++) {
        struct leat_msg_cluster_node row;
        leat_msg_cluster_node_read(&reader, &row);
        if (!reader.failed) code = node_add(nodes, &row);
    }
    if (reader.failed) {
        cli_error("the server's answer can't be read: it is of another version");
        code = CLI_FAILED;
    }
    cli_answer_fini(&answer);
    return code;
}

/* A server alone is asked at the address where it was found: its own address may not be reachable. */
static int node_read(const struct bench_nodes *nodes, const struct bench_node *node,
                     struct cli_status *out)
{
    return nodes->count == 1 ? cli_status_get(out) : cli_status_of(node->address, out);
}

int bench_nodes_begin(struct bench_nodes *nodes)
{
    int code = CLI_OK;
    for (uint32_t i = 0; code == CLI_OK && i < nodes->count; i++)
        code = node_read(nodes, &nodes->rows[i], &nodes->rows[i].before);
    return code;
}

int bench_nodes_end(struct bench_nodes *nodes)
{
    int code = CLI_OK;
    for (uint32_t i = 0; code == CLI_OK && i < nodes->count; i++)
        code = node_read(nodes, &nodes->rows[i], &nodes->rows[i].after);
    return code;
}

double bench_nodes_cpu_seconds(const struct bench_nodes *nodes)
{
    double seconds = 0;
    for (uint32_t i = 0; i < nodes->count; i++)
        seconds += (double)(nodes->rows[i].after.cpu_us - nodes->rows[i].before.cpu_us) / 1e6;
    return seconds;
}

bool bench_replication_check(const char *wanted)
{
    if (!wanted) return true;
    for (unsigned kind = 1; kind < LEAT_RMEM_KINDS; kind++)
        if (strcmp(leat_rmem_kind_name((enum leat_rmem_kind)kind), wanted) == 0) return true;
    cli_error("--replication is shm, verbs, tcp or rpc, not '%s'", wanted);
    return false;
}

int bench_nodes_transport(const struct bench_nodes *nodes, const char *wanted)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        uint64_t kinds = nodes->rows[i].after.accounts.transports;
        for (unsigned kind = 1; kind < LEAT_RMEM_KINDS; kind++) {
            const char *name = leat_rmem_kind_name((enum leat_rmem_kind)kind);
            if (!(kinds >> kind & 1) || strcmp(name, wanted) == 0) continue;
            cli_error("node %s replicates by %s, not %s: start leatd with --replication %s",
                      nodes->rows[i].name, name, wanted, wanted);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

/* ---- results ---- */

static struct leat_msg_accounts accounts_less(const struct leat_msg_accounts *after,
                                              const struct leat_msg_accounts *before)
{
    uint64_t a[LEAT_MSG_ACCOUNTS], b[LEAT_MSG_ACCOUNTS];
    struct leat_msg_accounts out;
    memcpy(a, after, sizeof a);
    memcpy(b, before, sizeof b);
    for (unsigned i = 0; i < LEAT_MSG_ACCOUNTS; i++)
        a[i] -= b[i];
    memcpy(&out, a, sizeof out);
    out.transports = after->transports;
    out.own_buffer_bytes = after->own_buffer_bytes;
    out.copy_buffer_bytes = after->copy_buffer_bytes;
    out.logs_troubled = after->logs_troubled;
    return out;
}

/* Of one node, in seconds. */
struct roles {
    double total, append, replicate, data_path, control, flush, zeroing, emulation, other;
};

/* What cores do for the copies of others is counted from where a message is in hand. Receiving and
 * answering are not told apart from other work of a core: part of append at a node that appends,
 * else shown as other. */
static struct roles roles_of(const struct bench_node *node, const struct leat_msg_accounts *d)
{
    double rest =
        (double)(d->cpu_cores_ns - d->cpu_control_ns - d->cpu_data_path_ns - d->cpu_emulation_ns);
    bool backup_only = node->after.appended_records == node->before.appended_records;
    return (struct roles){
        .total = (double)(node->after.cpu_us - node->before.cpu_us) / 1e6,
        .append = backup_only ? 0 : rest / 1e9,
        .other = backup_only ? rest / 1e9 : 0,
        .replicate = (double)d->cpu_replicate_ns / 1e9,
        .data_path = (double)d->cpu_data_path_ns / 1e9,
        .control = (double)d->cpu_control_ns / 1e9,
        .flush = (double)d->cpu_flush_ns / 1e9,
        .zeroing = (double)d->cpu_zeroing_ns / 1e9,
        .emulation = (double)d->cpu_emulation_ns / 1e9,
    };
}

static void roles_add(struct roles *sum, const struct roles *more)
{
    sum->total += more->total;
    sum->append += more->append;
    sum->replicate += more->replicate;
    sum->data_path += more->data_path;
    sum->control += more->control;
    sum->flush += more->flush;
    sum->zeroing += more->zeroing;
    sum->emulation += more->emulation;
    sum->other += more->other;
}

static void roles_json(FILE *out, const struct roles *r)
{
    fprintf(out,
            "{\"total\":%.6f,\"append\":%.6f,\"replicate\":%.6f,\"backup_data_path\":%.6f,"
            "\"backup_control\":%.6f,\"backup_other\":%.6f,\"flush\":%.6f,\"zeroing\":%.6f,"
            "\"emulation\":%.6f}",
            r->total, r->append, r->replicate, r->data_path, r->control, r->other, r->flush,
            r->zeroing, r->emulation);
}

static struct leat_msg_accounts sums(const struct bench_nodes *nodes, struct roles *out_roles)
{
    struct leat_msg_accounts sum = {0};
    uint64_t a[LEAT_MSG_ACCOUNTS] = {0}, b[LEAT_MSG_ACCOUNTS];
    *out_roles = (struct roles){0};
    uint64_t transports = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const struct bench_node *node = &nodes->rows[i];
        struct leat_msg_accounts d = accounts_less(&node->after.accounts, &node->before.accounts);
        struct roles roles = roles_of(node, &d);
        roles_add(out_roles, &roles);
        transports |= d.transports;
        memcpy(b, &d, sizeof b);
        for (unsigned k = 0; k < LEAT_MSG_ACCOUNTS; k++)
            a[k] += b[k];
    }
    memcpy(&sum, a, sizeof sum);
    sum.transports = transports;
    return sum;
}

void bench_nodes_json(FILE *out, const struct bench_nodes *nodes)
{
    struct roles roles;
    struct leat_msg_accounts sum = sums(nodes, &roles);
    fputs(",\"cpu_seconds\":", out);
    roles_json(out, &roles);
    fprintf(out,
            ",\"replicated_bytes\":%" PRIu64 ",\"replicated_writes\":%" PRIu64
            ",\"segments\":%" PRIu64 ",\"control_rpcs\":%" PRIu64 ",\"open_rpcs\":%" PRIu64
            ",\"hibernate_rpcs\":%" PRIu64 ",\"resume_rpcs\":%" PRIu64 ",\"flush_rpcs\":%" PRIu64
            ",\"other_rpcs\":%" PRIu64 ",\"lost_backups\":%" PRIu64 ",\"transports\":[",
            sum.replicated_bytes, sum.writes, sum.segments, sum.control_rpcs, sum.open_rpcs,
            sum.hibernate_rpcs, sum.resume_rpcs, sum.flush_rpcs, sum.other_rpcs, sum.lost_backups);
    bool first = true;
    for (unsigned kind = 1; kind < LEAT_RMEM_KINDS; kind++) {
        if (!(sum.transports >> kind & 1)) continue;
        fprintf(out, "%s\"%s\"", first ? "" : ",", leat_rmem_kind_name((enum leat_rmem_kind)kind));
        first = false;
    }
    fputs("],\"nodes\":[", out);
    for (uint32_t i = 0; i < nodes->count; i++) {
        const struct bench_node *node = &nodes->rows[i];
        struct leat_msg_accounts d = accounts_less(&node->after.accounts, &node->before.accounts);
        struct roles own = roles_of(node, &d);
        fprintf(out, "%s{\"name\":", i ? "," : "");
        cli_json_string(out, node->name, strlen(node->name));
        fprintf(
            out, ",\"appended_records\":%" PRIu64 ",\"memory_used\":%" PRIu64 ",\"cpu_seconds\":",
            node->after.appended_records - node->before.appended_records, node->after.memory_used);
        roles_json(out, &own);
        fputc('}', out);
    }
    fputc(']', out);
}

void bench_nodes_print(const struct bench_nodes *nodes)
{
    if (nodes->count < 2) return;
    struct roles roles;
    char text[32];
    struct leat_msg_accounts sum = sums(nodes, &roles);
    for (uint32_t i = 0; i < nodes->count; i++) {
        const struct bench_node *node = &nodes->rows[i];
        struct leat_msg_accounts d = accounts_less(&node->after.accounts, &node->before.accounts);
        struct roles own = roles_of(node, &d);
        printf(
            "  node %-6s %.2f s of CPU: append %.2f, backup's data path %.3f, its requests %.3f, "
            "other %.3f, flush %.2f, zeroing %.2f, emulation %.3f\n",
            node->name, own.total, own.append, own.data_path, own.control, own.other, own.flush,
            own.zeroing, own.emulation);
    }
    printf("  replicated  %s in %" PRIu64 " write%s; %" PRIu64 " segment%s, %" PRIu64
           " control requests, %" PRIu64 " flushes\n",
           cli_bytes_text((double)sum.replicated_bytes, text), sum.writes, cli_s(sum.writes),
           sum.segments, cli_s(sum.segments), sum.control_rpcs, sum.flush_rpcs);
}
