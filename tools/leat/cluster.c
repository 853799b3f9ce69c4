/* SPDX-License-Identifier: Apache-2.0 */
/* leat cluster status; leat node drain, undrain, add-voter, replace */
#include "tools/leat/cluster.h"
#include "tools/leat/commands.h"

#include "base/nearest.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char cluster_help[] =
    "Usage: leat cluster status [--json] [--watch]\n"
    "\n"
    "Prints the nodes of the cluster, the leader, the streamlets and the memory of each node,\n"
    "the logs that lack copies, and the transport of copies between nodes.\n"
    "\n"
    "  --json     print JSON\n"
    "  --watch    print repeatedly until interrupted: on a terminal in place, four times a\n"
    "             second; else every second. Goes on if the server that was asked dies\n"
    "  -b, --brokers HOST:PORT,...\n"
    "\n"
    "Exit codes: 0 done; 1 something is wrong (a node is down, full or does not answer, a voter\n"
    "cannot be reached, copies lack, records are missing or damaged, bytes were passed over\n"
    "that nobody has seen yet); 2 wrong usage; 3 no server answers.\n";

static const char node_help[] =
    "Usage: leat node COMMAND NAME\n"
    "\n"
    "  leat node drain NAME      give the node no new streamlets and copies, and move its\n"
    "                            streamlets to other nodes\n"
    "  leat node undrain NAME    take the node back into use\n"
    "  leat node add-voter NAME  make the node a voter of the coordinators\n"
    "  leat node replace NAME    let a voter whose disk is lost start again with an empty disk.\n"
    "                            Only when the old disk is gone for good: a voter that has\n"
    "                            forgotten entries may undo decisions\n"
    "\n"
    "  -b, --brokers HOST:PORT,...\n";

enum { WATCH_MS = 250, WATCH_FILE_MS = 1000 };

static int by_name(const void *a, const void *b)
{
    const struct leat_msg_string *one = &((const struct leat_msg_cluster_node *)a)->name;
    const struct leat_msg_string *other = &((const struct leat_msg_cluster_node *)b)->name;
    int order =
        memcmp(one->text, other->text, one->bytes < other->bytes ? one->bytes : other->bytes);
    return order != 0 ? order : (one->bytes > other->bytes) - (one->bytes < other->bytes);
}

int cli_cluster_get(struct leat_cluster_told *cluster, struct cli_answer *answer, bool quiet)
{
    uint8_t bytes[8];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 0);
    if (cli_call(LEAT_KIND_CLUSTER_STATUS, &body, answer)) {
        if (!quiet) return cli_refused(answer);
        cli_answer_fini(answer);
        return CLI_FAILED;
    }
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->bytes, answer->count);
    if (leat_cluster_told_read(&reader, cluster)) {
        qsort(cluster->nodes, cluster->node_count, sizeof *cluster->nodes, by_name);
        return CLI_OK;
    }
    if (!quiet) cli_error("the server's answer can't be read: it is of another version");
    cli_answer_fini(answer);
    return CLI_FAILED;
}

static const char *state_name(const struct leat_msg_cluster_node *node)
{
    static const char *const names[] = {"?", "up", "down", "gone"};
    if (node->state == 1 && node->draining) return "draining";
    return names[node->state < 4 ? node->state : 0];
}

static void print_text(const char *key, struct leat_msg_string text, const char *end)
{
    printf("\"%s\":", key);
    cli_json_string(stdout, text.text, text.bytes);
    fputs(end, stdout);
}

void cli_cluster_logs_json(struct leat_msg_reader reader, uint32_t count)
{
    putchar('[');
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_recovery_row row;
        leat_msg_recovery_row_read(&reader, &row);
        if (reader.failed) break;
        printf("%s{", i ? "," : "");
        print_text("stream", row.stream, ",");
        printf("\"streamlet\":%" PRIu64 ",\"log\":%" PRIu64 ",", row.streamlet, row.log);
        print_text("why", row.why, "}");
    }
    putchar(']');
}

void cli_passed_json(struct leat_msg_reader reader, uint32_t count)
{
    putchar('[');
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_passed row;
        leat_msg_passed_read(&reader, &row);
        if (reader.failed) break;
        printf("%s{", i ? "," : "");
        print_text("stream", row.stream, ",");
        printf("\"streamlet\":%" PRIu64 ",\"log\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"segments\":%" PRIu64 ",\"last_segment\":%" PRIu64 ",\"end_offset\":%" PRIu64 "}",
               row.streamlet, row.log, row.bytes, row.segments, row.segment, row.offset);
    }
    putchar(']');
}

/* What the node says of itself; "report": null and why, when it was not heard. */
static void print_report_json(const struct leat_msg_node_report *report)
{
    if (!report->known) {
        print_text("report_missing", report->why, ",");
        printf("\"report\":null");
        return;
    }
    printf("\"report\":{\"pool_limit_bytes\":%" PRIu64 ",\"pool_used_bytes\":%" PRIu64
           ",\"replicas_limit_bytes\":%" PRIu64 ",\"replicas_used_bytes\":%" PRIu64
           ",\"replicas_unflushed_bytes\":%" PRIu64 ",\"logs\":%" PRIu64
           ",\"logs_under_replicated\":%" PRIu64 ",\"logs_below_min_copies\":%" PRIu64
           ",\"logs_suspended\":%" PRIu64 ",\"segments_under_replicated\":%" PRIu64
           ",\"segments_misplaced\":%" PRIu64 ",\"peers\":[",
           report->pool_limit, report->pool_used, report->replicas_limit, report->replicas_used,
           report->replicas_unflushed, report->logs, report->logs_under_replicated,
           report->logs_below_min, report->logs_suspended, report->segments_under_replicated,
           report->segments_misplaced);
    struct leat_msg_reader reader = report->peers;
    for (uint32_t i = 0; i < report->peer_count; i++) {
        struct leat_msg_report_peer peer;
        leat_msg_report_peer_read(&reader, &peer);
        if (reader.failed) break;
        printf("%s{", i ? "," : "");
        print_text("node", peer.node, ",");
        print_text("transport", peer.transport, ",");
        printf("\"up\":%s,\"replicas\":%" PRIu64 ",\"unflushed_bytes\":%" PRIu64 "}",
               peer.up ? "true" : "false", peer.replicas, peer.load_bytes);
    }
    printf("],");
    print_text("trouble", report->trouble, ",");
    printf("\"logs_in_trouble\":%" PRIu64 ",\"troubled_logs\":", report->logs_troubled);
    cli_cluster_logs_json(report->troubled, report->troubled_count);
    printf(",\"logs_passed_over\":%" PRIu64 ",\"passed_over\":", report->logs_passed);
    cli_passed_json(report->passed, report->passed_count);
    putchar('}');
}

static const char *phase_name(const struct leat_msg_recovery *recovery)
{
    static const char *const names[] = {"none", "collecting", "preparing", "committing"};
    return recovery->phase < 4 ? names[recovery->phase] : "?";
}

static void print_recovery_json(const struct leat_msg_recovery *recovery)
{
    printf("\"recovery\":{\"phase\":\"%s\",\"streamlets\":%" PRIu64 ",\"logs\":%" PRIu64
           ",\"decided\":%" PRIu64 ",\"nodes_asked\":%" PRIu64 ",\"nodes_answered\":%" PRIu64
           ",\"copies\":%" PRIu64 ",\"copies_under_way\":%" PRIu64 ",\"age_us\":%" PRIu64
           ",\"ended\":%" PRIu64 ",\"last_recovered\":%" PRIu64 ",\"last_us\":%" PRIu64
           ",\"last_since_crash_us\":%" PRIu64 ",\"waiting\":%" PRIu64 ",\"waiting_logs\":",
           phase_name(recovery), recovery->streamlets, recovery->logs, recovery->decided,
           recovery->nodes_asked, recovery->nodes_answered, recovery->copies, recovery->copies_open,
           recovery->age_us, recovery->ended, recovery->last_recovered, recovery->last_us,
           recovery->last_since_crash_us, recovery->waiting);
    cli_cluster_logs_json(recovery->rows, recovery->row_count);
    printf("},");
}

static bool node_is_down(const struct leat_cluster_told *cluster)
{
    for (uint32_t i = 0; i < cluster->node_count; i++)
        if (cluster->nodes[i].state == 2 && !cluster->nodes[i].draining) return true;
    return false;
}

static void print_recovery(const struct leat_cluster_told *cluster)
{
    const struct leat_msg_recovery *recovery = &cluster->recovery;
    if (recovery->phase != 0)
        printf("recovery %s: %" PRIu64 " streamlets with %" PRIu64 " logs, %" PRIu64 " of %" PRIu64
               " nodes answered, %" PRIu64 " of %" PRIu64 " copies made, for %" PRIu64 " ms\n",
               phase_name(recovery), recovery->streamlets, recovery->logs, recovery->nodes_answered,
               recovery->nodes_asked, recovery->copies - recovery->copies_open, recovery->copies,
               recovery->age_us / 1000);
    if (recovery->ended > 0)
        printf("recovered %" PRIu64 " time%s under this leader; the last: %" PRIu64
               " streamlet%s in %.1f ms, %.1f ms after the crash was known\n",
               recovery->ended, cli_s(recovery->ended), recovery->last_recovered,
               cli_s(recovery->last_recovered), (double)recovery->last_us / 1000,
               (double)recovery->last_since_crash_us / 1000);
    struct leat_msg_reader reader = recovery->rows;
    for (uint32_t i = 0; i < recovery->row_count; i++) {
        struct leat_msg_recovery_row row;
        leat_msg_recovery_row_read(&reader, &row);
        if (reader.failed) break;
        printf("waits    stream %.*s streamlet %" PRIu64 " log %" PRIu64 ": %.*s\n",
               (int)row.stream.bytes, row.stream.text, row.streamlet, row.log, (int)row.why.bytes,
               row.why.text);
    }
    if (recovery->waiting > recovery->row_count)
        printf("waits    %" PRIu64 " logs more\n", recovery->waiting - recovery->row_count);
    if (recovery->waiting > 0 && node_is_down(cluster))
        puts("         they go on by themselves when nodes come back that have what is missing: "
             "start "
             "those that\n"
             "         are down first. No loss is accepted before, or before it is said that they "
             "will "
             "not come back\n"
             "         (leat node drain NAME)");
    else if (recovery->waiting > 0)
        puts("         they go on by themselves when nodes come back that have what is missing; if "
             "none\n"
             "         can: leat log recover STREAM --streamlet S --log Q --accept-loss");
}

static bool waits_too(const struct leat_msg_recovery *recovery,
                      const struct leat_msg_recovery_row *log)
{
    struct leat_msg_reader reader = recovery->rows;
    for (uint32_t i = 0; i < recovery->row_count; i++) {
        struct leat_msg_recovery_row row;
        leat_msg_recovery_row_read(&reader, &row);
        if (reader.failed) break;
        if (row.stream_id == log->stream_id && row.streamlet == log->streamlet &&
            row.log == log->log)
            return true;
    }
    return false;
}

/* What owners report of their own logs. Logs that recovery names were printed with recovery's reason. */
static void print_troubled(const struct leat_cluster_told *cluster)
{
    uint64_t told = 0, more = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct leat_msg_cluster_node *node = &cluster->nodes[i];
        if (leat_node_told_unheard(node))
            printf("trouble  node %.*s is up and was not heard, so what its logs lack is not "
                   "known: %.*s\n",
                   (int)node->name.bytes, node->name.text, (int)node->report.why.bytes,
                   node->report.why.text);
        if (node->report.trouble.bytes > 0)
            printf("trouble  node %.*s: %.*s\n", (int)node->name.bytes, node->name.text,
                   (int)node->report.trouble.bytes, node->report.trouble.text);
        struct leat_msg_reader reader = node->report.troubled;
        for (uint32_t r = 0; r < node->report.troubled_count; r++) {
            struct leat_msg_recovery_row row;
            leat_msg_recovery_row_read(&reader, &row);
            if (reader.failed) break;
            if (waits_too(&cluster->recovery, &row)) continue;
            printf("trouble  stream %.*s streamlet %" PRIu64 " log %" PRIu64
                   " on node %.*s: %.*s\n",
                   (int)row.stream.bytes, row.stream.text, row.streamlet, row.log,
                   (int)node->name.bytes, node->name.text, (int)row.why.bytes, row.why.text);
            told++;
        }
        more += node->report.logs_troubled - node->report.troubled_count;
    }
    if (more > 0) printf("trouble  %" PRIu64 " log%s more\n", more, cli_s(more));
    if (told + more > 0 && cluster->recovery.waiting == 0)
        puts("         what nobody can bring back is given up by: leat log recover STREAM "
             "--streamlet S --log Q\n"
             "         --accept-loss");
}

void cli_passed_print(const struct leat_msg_passed *passed)
{
    if (passed->segments > 1)
        printf("at least %" PRIu64 " bytes behind the ends of %" PRIu64
               " segments, the last behind offset %" PRIu64 " in segment %" PRIu64
               ", were no whole writes when the node started, and were passed over\n",
               passed->bytes, passed->segments, passed->offset, passed->segment);
    else
        printf("at least %" PRIu64 " bytes behind offset %" PRIu64 ", the end of segment %" PRIu64
               ", were no whole write when the node started, and were passed over\n",
               passed->bytes, passed->offset, passed->segment);
}

/* Usually an operator must only look: no trouble, but not well before an operator has looked. */
static void print_passed(const struct leat_cluster_told *cluster)
{
    uint64_t told = 0, more = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct leat_msg_cluster_node *node = &cluster->nodes[i];
        struct leat_msg_reader reader = node->report.passed;
        for (uint32_t r = 0; r < node->report.passed_count; r++) {
            struct leat_msg_passed row;
            leat_msg_passed_read(&reader, &row);
            if (reader.failed) break;
            printf("note     stream %.*s streamlet %" PRIu64 " log %" PRIu64 " on node %.*s: ",
                   (int)row.stream.bytes, row.stream.text, row.streamlet, row.log,
                   (int)node->name.bytes, node->name.text);
            cli_passed_print(&row);
            told++;
        }
        more += node->report.logs_passed - node->report.passed_count;
    }
    if (more > 0) printf("note     %" PRIu64 " log%s more\n", more, cli_s(more));
    if (told > 0)
        puts("         as a rule writes that a power cut tore, acknowledged to nobody. To say that "
             "you have seen it:\n"
             "         leat log recover STREAM --streamlet S --log Q --accept-loss");
}

static bool same_text(struct leat_msg_string a, struct leat_msg_string b)
{
    return a.bytes == b.bytes && memcmp(a.text, b.text, a.bytes) == 0;
}

/* Of the coordinators, which are known by their node addresses; a server alone has none. */
static const char *role_name(const struct leat_cluster_told *cluster,
                             const struct leat_msg_cluster_node *node)
{
    if (node->node_address.bytes == 0) return cluster->head.leader_address.bytes ? "leader" : "-";
    if (same_text(node->node_address, cluster->head.leader_address)) return "leader";
    for (uint32_t i = 0; i < cluster->voter_count; i++)
        if (same_text(node->node_address, cluster->voters[i].address))
            return cluster->voters[i].votes ? "voter" : "joining";
    return "-";
}

static void print_json(const struct leat_cluster_told *cluster)
{
    const struct leat_msg_cluster *head = &cluster->head;
    printf("{\"cluster_id\":\"");
    for (size_t i = 0; i < sizeof head->cluster_id; i++)
        printf("%02x", head->cluster_id[i]);
    printf("\",");
    print_text("node", head->node, ",");
    print_text("role", head->role, ",");
    print_text("why", head->why, ",");
    bool alone = leat_cluster_told_alone(cluster); /* a server alone has no node address */
    print_text("leader_address", alone ? (struct leat_msg_string){"", 0} : head->leader_address,
               ",");
    printf("\"term\":%" PRIu64 ",\"applied_index\":%" PRIu64 ",\"streams\":%" PRIu64
           ",\"logs\":%" PRIu64 ",\"healthy\":%s,",
           head->term, head->applied_index, head->streams, head->logs,
           leat_cluster_told_well(cluster) ? "true" : "false");
    print_recovery_json(&cluster->recovery);
    printf("\"voters\":[");
    for (uint32_t i = 0; i < cluster->voter_count; i++) {
        const struct leat_msg_voter *voter = &cluster->voters[i];
        printf("%s{", i ? "," : "");
        print_text("address", alone ? (struct leat_msg_string){"", 0} : voter->address, ",");
        printf("\"votes\":%s,\"reachable\":%s,\"last_index\":%" PRIu64 "}",
               voter->votes ? "true" : "false", voter->reachable ? "true" : "false",
               voter->last_index);
    }
    printf("],\"nodes\":[");
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct leat_msg_cluster_node *node = &cluster->nodes[i];
        printf("%s{", i ? "," : "");
        print_text("name", node->name, ",");
        print_text("address", node->address, ",");
        print_text("node_address", node->node_address, ",");
        print_text("rack", node->rack, ",");
        printf("\"state\":\"%s\",\"role\":\"%s\",\"incarnation\":%" PRIu64 ",\"cores\":%" PRIu64
               ",\"memory_bytes\":%" PRIu64 ",\"streamlets\":%" PRIu64 ",",
               state_name(node), role_name(cluster, node), node->incarnation, node->cores,
               node->memory_bytes, node->streamlets);
        print_report_json(&node->report);
        printf("}");
    }
    printf("]}\n");
}

static char *text_cell(struct leat_msg_string text)
{
    return text.bytes ? cli_cell("%.*s", (int)text.bytes, text.text) : cli_cell("-");
}

static char *used_cell(uint64_t used, uint64_t limit)
{
    char a[32], b[32];
    return cli_cell("%s/%s", cli_bytes_text((double)used, a), cli_bytes_text((double)limit, b));
}

/* The table of the nodes. */
static void print_nodes(const struct leat_cluster_told *cluster)
{
    enum { COLUMNS = 8 };
    static const char *const columns[COLUMNS] = {"node",    "state", "role", "incarnation",
                                                 "clients", "nodes", "rack", "cores"};
    char **cells = calloc((size_t)cluster->node_count * COLUMNS + 1, sizeof *cells);
    if (!cells) abort();
    size_t at = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct leat_msg_cluster_node *node = &cluster->nodes[i];
        cells[at++] = text_cell(node->name);
        cells[at++] = cli_cell("%s", state_name(node));
        cells[at++] = cli_cell("%s", role_name(cluster, node));
        cells[at++] = cli_cell("%" PRIu64, node->incarnation);
        cells[at++] = text_cell(node->address);
        cells[at++] = text_cell(node->node_address);
        cells[at++] = text_cell(node->rack);
        cells[at++] = cli_cell("%" PRIu64, node->cores);
    }
    cli_table(columns, COLUMNS, cells, cluster->node_count, "lllrlllr");
    cli_cells_free(cells, at);
}

/* What they have. */
static void print_loads(const struct leat_cluster_told *cluster)
{
    enum { COLUMNS = 7 };
    static const char *const columns[COLUMNS] = {
        "node", "streamlets", "own memory", "others' copies", "logs", "lacking", "below min"};
    char **cells = calloc((size_t)cluster->node_count * COLUMNS + 1, sizeof *cells);
    if (!cells) abort();
    size_t at = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct leat_msg_cluster_node *node = &cluster->nodes[i];
        const struct leat_msg_node_report *report = &node->report;
        cells[at++] = text_cell(node->name);
        cells[at++] = cli_cell("%" PRIu64, node->streamlets);
        if (!report->known) {
            for (unsigned c = 2; c < COLUMNS; c++)
                cells[at++] = cli_cell("?");
            continue;
        }
        cells[at++] = used_cell(report->pool_used, report->pool_limit);
        cells[at++] = used_cell(report->replicas_used, report->replicas_limit);
        cells[at++] = cli_cell("%" PRIu64, report->logs);
        cells[at++] = cli_cell("%" PRIu64, report->logs_under_replicated);
        cells[at++] = cli_cell("%" PRIu64, report->logs_below_min);
    }
    cli_table(columns, COLUMNS, cells, cluster->node_count, "lrrrrrr");
    cli_cells_free(cells, at);
}

/* How the node reaches its backups, and what is wrong with its logs. */
static void print_peers(const struct leat_msg_cluster_node *node)
{
    const struct leat_msg_node_report *report = &node->report;
    int name_bytes = (int)node->name.bytes;
    if (report->known && report->segments_under_replicated > 0)
        printf("%.*s: %" PRIu64
               " segment%s lack%s copies: made again in the background, where nodes are there\n",
               name_bytes, node->name.text, report->segments_under_replicated,
               cli_s(report->segments_under_replicated),
               report->segments_under_replicated == 1 ? "s" : "");
    if (report->known && report->segments_misplaced > 0)
        printf("%.*s: %" PRIu64
               " segment%s ha%s two copies on one host or rack: there were too few others\n",
               name_bytes, node->name.text, report->segments_misplaced,
               cli_s(report->segments_misplaced), report->segments_misplaced == 1 ? "s" : "ve");
    if (report->logs_below_min > 0)
        printf("%.*s: appends to %" PRIu64 " log%s are refused: fewer copies than they need\n",
               name_bytes, node->name.text, report->logs_below_min, cli_s(report->logs_below_min));
    struct leat_msg_reader reader = report->peers;
    bool first = true;
    for (uint32_t i = 0; report->known && i < report->peer_count; i++) {
        struct leat_msg_report_peer peer;
        leat_msg_report_peer_read(&reader, &peer);
        if (reader.failed) break;
        if (first) printf("%.*s copies to", name_bytes, node->name.text);
        printf("%s %.*s (%.*s)", first ? "" : ",", (int)peer.node.bytes, peer.node.text,
               !peer.up               ? 4
               : peer.transport.bytes ? (int)peer.transport.bytes
                                      : 11,
               !peer.up               ? "down"
               : peer.transport.bytes ? peer.transport.text
                                      : "nothing yet");
        first = false;
    }
    if (!first) putchar('\n');
}

/* The node may be up, but its voter stays out: the disk was lost, and with it the voter's promises. A node that does
 * not answer may only be shown as up, since no majority is there to declare it crashed: this node keeps its vote. */
static void print_voter(const struct leat_cluster_told *cluster, const struct leat_msg_voter *voter)
{
    printf("%s  %.*s%s", voter->votes ? "voter    " : "joining  ", (int)voter->address.bytes,
           voter->address.text, voter->reachable ? "" : ", not reachable");
    for (uint32_t i = 0; !voter->reachable && i < cluster->node_count; i++) {
        const struct leat_msg_cluster_node *node = &cluster->nodes[i];
        if (node->state == 1 && node->report.known && same_text(node->node_address, voter->address))
            printf(
                ", though node %.*s is up: if its disk was lost for good: leat node replace %.*s",
                (int)node->name.bytes, node->name.text, (int)node->name.bytes, node->name.text);
    }
    putchar('\n');
}

static void print_people(const struct leat_cluster_told *cluster)
{
    const struct leat_msg_cluster *head = &cluster->head;
    printf("cluster  ");
    for (size_t i = 0; i < sizeof head->cluster_id; i++)
        printf("%02x", head->cluster_id[i]);
    printf(", %" PRIu64 " stream%s, %" PRIu64 " log%s\n", head->streams,
           head->streams == 1 ? "" : "s", head->logs, head->logs == 1 ? "" : "s");
    if (leat_cluster_told_alone(cluster)) {
        puts("a server alone");
        print_recovery(cluster);
        print_troubled(cluster);
        print_passed(cluster);
        return;
    }
    const char *nobody = head->term > 0 ? "none" : "none that the node asked knows of";
    printf("leader   %.*s",
           head->leader_address.bytes ? (int)head->leader_address.bytes : (int)strlen(nobody),
           head->leader_address.bytes ? head->leader_address.text : nobody);
    if (head->term > 0) printf(" (term %" PRIu64 ")", head->term);
    putchar('\n');
    if (head->why.bytes) printf("trouble  %.*s\n", (int)head->why.bytes, head->why.text);
    for (uint32_t i = 0; i < cluster->voter_count; i++)
        print_voter(cluster, &cluster->voters[i]);
    print_recovery(cluster);
    print_troubled(cluster);
    print_passed(cluster);
    putchar('\n');
    print_nodes(cluster);
    putchar('\n');
    print_loads(cluster);
    for (uint32_t i = 0; i < cluster->node_count; i++)
        print_peers(&cluster->nodes[i]);
}

static void print_time(void)
{
    char text[40];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(text, sizeof text, "%F %T", &local);
    puts(text);
}

static int status(int argc, char **argv)
{
    bool json = false, watch = false;
    const struct cli_option options[] = {
        CLI_COMMON, {"json", 0, CLI_FLAG, &json}, {"watch", 0, CLI_FLAG, &watch}};
    int n = cli_parse(argc, argv, options, sizeof options / sizeof *options);
    if (n != 0) {
        if (n > 0) cli_error("cluster status takes no operands");
        return CLI_USAGE;
    }
    static struct leat_cluster_told cluster;
    struct cli_answer answer;
    if (watch) cli_catch_signals(); /* asked once, it ends at once */
    int code;
    bool screen = watch && !json && isatty(STDOUT_FILENO);
    do {
        code = cli_cluster_get(&cluster, &answer, watch);
        if (code != CLI_OK && !watch) return code;
        if (screen) fputs("\033[H\033[J", stdout); /* in place of what was there */
        if (watch && !json) print_time();
        if (code != CLI_OK) {
            /* The asked node may have died: the watch is there to show this. */
            if (!json) printf("no server answers, or too few of the coordinators are up\n");
            cli_disconnect();
            fflush(stdout);
            (void)poll(NULL, 0, WATCH_MS);
            continue;
        }
        if (json)
            print_json(&cluster);
        else
            print_people(&cluster);
        fflush(stdout);
        code = leat_cluster_told_well(&cluster) ? CLI_OK : CLI_FAILED;
        cli_answer_fini(&answer);
        if (!watch || cli_interrupted()) break;
        if (!json && !screen) putchar('\n');
        (void)poll(NULL, 0, screen ? WATCH_MS : WATCH_FILE_MS); /* a signal ends it early */
    } while (!cli_interrupted());
    return code;
}

int leat_cluster_main(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, cluster_help)) return CLI_OK;
    if (argc >= 1 && strcmp(argv[0], "status") == 0) return status(argc - 1, argv + 1);
    if (argc >= 1)
        cli_error("no 'cluster %s'; did you mean 'cluster status'?", argv[0]);
    else
        fputs(cluster_help, stderr);
    return CLI_USAGE;
}

/* An even number of voters survives no more failures than one voter less. */
static void hint_at_even_voters(void)
{
    static struct leat_cluster_told cluster;
    struct cli_answer answer;
    if (cli_cluster_get(&cluster, &answer, true) != CLI_OK) return;
    uint32_t votes = 0;
    for (uint32_t i = 0; i < cluster.voter_count; i++)
        votes += cluster.voters[i].votes;
    cli_answer_fini(&answer);
    if (votes % 2 == 0)
        printf("%u nodes vote: add another one, as %u survive no more failures than %u\n", votes,
               votes, votes - 1);
}

int leat_node_main(int argc, char **argv)
{
    static const char *const verbs[] = {"drain", "undrain", "add-voter", "replace"};
    if (cli_wants_help(argc, argv, node_help)) return CLI_OK;
    if (argc < 1) {
        fputs(node_help, stderr);
        return CLI_USAGE;
    }
    uint32_t what = 0;
    for (uint32_t i = 0; i < 4; i++)
        if (strcmp(argv[0], verbs[i]) == 0) what = i + 1;
    static const char *const goodbyes[] = {"forget", "remove", "delete", "decommission"};
    for (uint32_t i = 0; i < sizeof goodbyes / sizeof goodbyes[0]; i++) {
        if (strcmp(argv[0], goodbyes[i]) != 0) continue;
        cli_error("no node is forgotten: it may be the last one to have something. After 'leat "
                  "node drain NAME' it gives its streamlets away, and is left out once it stops");
        return CLI_USAGE;
    }
    if (what == 0) {
        const char *near = leat_nearest_word(argv[0], verbs, 4);
        cli_error("no 'node %s'; did you mean 'node %s'?", argv[0], near ? near : verbs[0]);
        return CLI_USAGE;
    }
    const struct cli_option options[] = {CLI_COMMON};
    int n = cli_parse(argc - 1, argv + 1, options, 1);
    if (n != 1) {
        if (n >= 0) cli_error("node %s wants one node's NAME", verbs[what - 1]);
        return CLI_USAGE;
    }
    uint8_t bytes[512];
    struct leat_msg_writer body;
    struct leat_msg_node_change change = {what, {argv[1], (uint32_t)strnlen(argv[1], 400)}};
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_node_change_write(&body, &change);
    cli_administer();
    /* The node may be coming up just now, or a leader be chosen: that passes. */
    struct cli_answer answer;
    leat_err rc = cli_call_patiently(LEAT_KIND_NODE_CHANGE, &body, &answer);
    /* Asked again, and the node votes: the first asked node has replaced the voter, and could not answer. */
    bool replaced = strcmp(argv[0], "replace") == 0 && rc == LEAT_E_EXISTS && answer.again;
    if (rc != LEAT_OK && !replaced) return cli_refused(&answer);
    cli_answer_fini(&answer);
    static const char *const now[] = {
        "gets nothing new, and gives its streamlets away: leat cluster status shows them go",
        "is in use", "votes", "votes"};
    printf("node %s %s\n", argv[1], now[what - 1]);
    if (strcmp(argv[0], "add-voter") == 0) hint_at_even_voters();
    return CLI_OK;
}
