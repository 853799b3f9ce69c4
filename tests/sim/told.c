/* SPDX-License-Identifier: Apache-2.0 */
/* What operators and clients are told is checked like data (A13). When it is quiet a client asks each node that serves,
 * or one node (told_round.c), for the cluster's status, the description of each stream, and by Kafka's protocol for the
 * leaders of partitions. The answers have to name exactly the nodes that are down or full, and the logs that wait, are
 * damaged, lack copies or refuse appends (truth.h), by the judgement by which `leat` chooses its words and its exit
 * code. After a wrong answer the client asks again: what passes by itself is no lie, what stays for TOLD_US_MAX is. */
#include "tests/sim/told.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "tests/sim/asks.h"
#include "tests/sim/kafka_client.h"
#include "tests/sim/stranger.h"
#include "tests/sim/told_groups.h"
#include "tests/sim/truth.h"
#include "wire/frame.h"
#include "wire/verdict.h"

enum {
    TOLD_US_MAX = 20 * 1000 * 1000,
    ANSWER_US = 4 * 1000 * 1000, /* a node that has lost its power says nothing at all */
    AGAIN_US = 50 * 1000,        /* doubled so often at most: */
    TRIES_SLOWER = 5,
    WRONG_BYTES = 400,
    NUMBER_HELLO = 1,
    NUMBER_STATUS = 2,
    NUMBER_STREAM = 3,                           /* and on: one for each stream */
    NUMBER_GROUPS = NUMBER_STREAM + SIM_STREAMS, /* and on: told_groups_native.c */
    NODE_UP = 1,
    NODE_DOWN = 2,
    NODE_GONE = 3,
};

struct told;
/* One node is asked, at one port. */
struct line {
    struct told *told;
    const struct sim_server *server;
    struct leat_conn *conn;
    bool kafka, right; /* right: all that was told agrees with the truth */
    uint32_t due;      /* questions by their numbers that have no right answer yet: a bit each */
    bool agreed[SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX]; /* Kafka's: once, with the truth of then */
    unsigned tries;
    bool open;
    unsigned left;                 /* answers */
    unsigned wrongs, asked;        /* asked: times */
    unsigned wrongs_before;        /* this pass */
    char wrong[WRONG_BYTES];       /* the first of the last pass in which anything was wrong */
    struct sim_groups_seen groups; /* when it was asked */
};
struct told {
    struct scenario *scenario;
    struct sim_actor *actor;
    const struct sim_server *only; /* one node is asked; NULL: each node that serves */
    enum sim_told_what what;
    struct line lines[2 * SIM_SERVERS_MAX];
    unsigned count;
    bool trouble, lacking;             /* there was something to be told of */
    struct leat_cluster_told *cluster; /* large */
};
static struct told *told_of_seed;

__attribute__((format(printf, 2, 3))) static void wrong(struct line *line, const char *format, ...)
{
    va_list args;
    if (line->wrongs++ > line->wrongs_before) return;
    va_start(args, format);
    (void)vsnprintf(line->wrong, sizeof line->wrong, format, args);
    va_end(args);
}

/* ---- the cluster's status ---- */

struct sums {
    struct line *line;
    const struct leat_cluster_told *cluster;
    const struct sim_server *server; /* whose report is looked at */
    uint64_t troubled, lacking, below_min, full, passed;
    bool bad;
    char why[120]; /* of `bad`: the first */
};

static bool rows_name(struct leat_msg_reader reader, uint32_t count, struct leat_log_ref ref)
{
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_recovery_row row;
        leat_msg_recovery_row_read(&reader, &row);
        if (row.stream_id == ref.stream && row.streamlet == ref.streamlet && row.log == ref.log)
            return true;
    }
    return false;
}

static bool status_names(const struct leat_cluster_told *cluster, struct leat_log_ref ref)
{
    if (rows_name(cluster->recovery.rows, cluster->recovery.row_count, ref)) return true;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct leat_msg_node_report *report = &cluster->nodes[i].report;
        if (report->known && rows_name(report->troubled, report->troubled_count, ref)) return true;
    }
    return false;
}

/* So many are troubled that not all of them are named. */
static bool status_is_cut(const struct leat_cluster_told *cluster)
{
    bool cut = cluster->recovery.waiting > cluster->recovery.row_count;
    for (uint32_t i = 0; i < cluster->node_count; i++)
        cut |= cluster->nodes[i].report.logs_troubled > cluster->nodes[i].report.troubled_count;
    return cut;
}

static const char *log_words(const struct truth_log *log)
{
    static const char *const states[] = {"serves", "waits", "is damaged", "has stopped"};
    return !log->owner                      ? "is nobody's"
           : !log->served                   ? "is served by nobody"
           : log->state != LEAT_LOG_SERVING ? states[log->state]
           : log->damaged                   ? "lacks records"
           : log->full                      ? "is full"
           : log->below_min                 ? "has too few copies for appends"
           : log->lacking                   ? "lacks copies"
                                            : "serves";
}

static void bad(struct sums *sums, const char *what, const char *name)
{
    if (!sums->bad) snprintf(sums->why, sizeof sums->why, "%s %s", what, name);
    sums->bad = true;
}

static void log_sum(void *arg, const struct truth_log *log)
{
    struct sums *sums = arg;
    struct line *line = sums->line;
    bool troubled = truth_is_troubled(log), named = status_names(sums->cluster, log->ref);
    bool away = log->owner && !sim_serves(log->owner);
    line->told->trouble |= troubled;
    line->told->lacking |= log->lacking > 0;
    if (troubled && !named && !status_is_cut(sums->cluster))
        wrong(line, "log %u/%u of %s %s, and status does not name it", log->ref.streamlet,
              log->ref.log, log->stream, log_words(log));
    if (!troubled && !away && named && log->served)
        wrong(line, "status names log %u/%u of %s, which %s", log->ref.streamlet, log->ref.log,
              log->stream, log_words(log));
    if (troubled || !log->served || log->lacking || log->below_min || log->full || log->passed)
        bad(sums, log->stream, log->passed ? "passed over" : log_words(log));
    if (log->owner != sums->server || !log->served) return;
    sums->troubled += log->state != LEAT_LOG_SERVING || log->damaged;
    sums->lacking += log->lacking > 0;
    sums->below_min += log->below_min;
    sums->full += log->full;
    sums->passed += log->passed;
}

static bool has_word(struct leat_msg_string text, const char *word)
{
    return text.bytes && memmem(text.text, text.bytes, word, strlen(word)) != NULL;
}

static void count_judge(struct line *line, const struct sim_server *server, const char *what,
                        uint64_t told, uint64_t truth)
{
    if (told != truth)
        wrong(line, "status says that %llu logs of %s %s, and %llu do", (unsigned long long)told,
              server->name, what, (unsigned long long)truth);
}

static void node_judge(struct sums *sums, const struct sim_server *server)
{
    struct line *line = sums->line;
    const struct leat_cluster_told *cluster = sums->cluster;
    const struct leat_msg_cluster_node *node = NULL;
    bool alone = line->told->scenario->server_count == 1;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct leat_msg_string *name = &cluster->nodes[i].name;
        bool same = name->bytes == strlen(server->name) &&
                    memcmp(name->text, server->name, name->bytes) == 0;
        if (cluster->nodes[i].state != NODE_GONE && (same || alone)) node = &cluster->nodes[i];
    }
    bool serves = sim_serves(server);
    if (!serves || server->forgot) bad(sums, server->name, "is not there, or does not vote");
    if (!node)
        wrong(line, "status does not show %s", server->name);
    else if (serves ? node->state != NODE_UP : node->state != NODE_DOWN)
        wrong(line, "status says state %llu of %s, which %s", (unsigned long long)node->state,
              server->name, serves ? "serves" : "is away");
    else if (serves && !node->report.known)
        wrong(line, "status has not heard %s", server->name);
    if (!node || !serves || !node->report.known) return;
    const struct leat_msg_node_report *report = &node->report;
    sums->server = server;
    sums->troubled = sums->lacking = sums->below_min = sums->full = sums->passed = 0;
    (void)truth_each(line->told->scenario, log_sum, sums);
    count_judge(line, server, "are in trouble", report->logs_troubled, sums->troubled);
    count_judge(line, server, "lack copies", report->logs_under_replicated, sums->lacking);
    count_judge(line, server, "have too few copies for appends", report->logs_below_min,
                sums->below_min);
    count_judge(line, server, "have passed over bytes", report->logs_passed, sums->passed);
    if (sums->full > 0 && !has_word(report->trouble, "disk is full"))
        wrong(line, "the disk of %s is full, and status does not say so", server->name);
    if (has_word(report->trouble, "disk is full") && !sim_disk_is_full(server->disk))
        wrong(line, "status says that the disk of %s is full", server->name);
    else if (report->trouble.bytes && sums->full == 0 && !sim_disk_is_full(server->disk) &&
             !line->told->scenario->budget)
        wrong(line, "status says of %s: %.*s", server->name, (int)report->trouble.bytes,
              report->trouble.text);
    if (report->trouble.bytes) bad(sums, server->name, "has trouble");
}

static void names_note(struct scenario *scenario, const struct leat_cluster_told *cluster)
{
    memset(scenario->status_names, 0, sizeof scenario->status_names);
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        for (uint32_t s = 0; s < scenario->streams[i].settings.streamlets; s++)
            for (uint32_t q = 0; q < scenario->streams[i].settings.logs; q++)
                scenario->status_names[i][s][q] =
                    status_is_cut(cluster) ||
                    status_names(cluster, (struct leat_log_ref){scenario->streams[i].id, s, q});
}

static void status_judge(struct line *line, struct leat_msg_reader *reader)
{
    struct scenario *scenario = line->told->scenario;
    struct leat_cluster_told *cluster = line->told->cluster;
    struct sums sums = {.line = line, .cluster = cluster};
    if (!leat_cluster_told_read(reader, cluster)) {
        wrong(line, "status can't be read");
        return;
    }
    for (unsigned i = 0; i < scenario->server_count; i++)
        node_judge(&sums, &scenario->servers[i]);
    names_note(scenario, cluster);
    bool well = leat_cluster_told_well(cluster);
    if (well && sums.bad)
        wrong(line, "status says that all is well (exit 0), and %s", sums.why);
    else if (!well && !sums.bad)
        wrong(line,
              "status says that not all is well (exit 1), and nothing is wrong: %.*s; phase "
              "%llu",
              (int)cluster->head.why.bytes, cluster->head.why.bytes ? cluster->head.why.text : "",
              (unsigned long long)cluster->recovery.phase);
}

/* ---- the description of a stream ---- */

static const char *state_word(const struct truth_log *log)
{
    static const char *const states[] = {"ok", "waiting", "damaged", "stopped"};
    if (!log->served) return "unknown";
    return log->state != LEAT_LOG_SERVING ? states[log->state]
           : log->damaged                 ? "damaged"
           : log->full                    ? "full"
                                          : "ok";
}

static void numbers_judge(struct line *line, const struct truth_log *log,
                          const struct leat_msg_log_info *row)
{
    /* A row has one code: a log that lacks records does not say that its node's disk is full. */
    bool full = log->full && !log->damaged;
    const struct {
        const char *what;
        uint64_t told, truth;
    } numbers[] = {
        {"first offset", row->first_offset, log->first},
        {"end", row->acked_offset, log->end},
        {"copies", row->copies, log->copies},
        {"copies now", row->copies_now, log->whole},
        {"segments that lack copies", row->segments_lacking, log->lacking},
        {"too few copies for appends", row->below_min, log->below_min},
        {"bytes passed over", row->passed_bytes > 0, log->passed},
        {"takes appends", leat_log_told_takes_appends(row),
         log->state == LEAT_LOG_SERVING && !full && !log->below_min},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].told != numbers[i].truth)
            wrong(line, "description of log %u/%u of %s: %s %llu, and it is %llu",
                  log->ref.streamlet, log->ref.log, log->stream, numbers[i].what,
                  (unsigned long long)numbers[i].told, (unsigned long long)numbers[i].truth);
}

static void row_judge(struct line *line, uint32_t stream, uint32_t id,
                      const struct leat_msg_log_info *row)
{
    struct scenario *scenario = line->told->scenario;
    struct truth_log log;
    struct leat_log_ref ref = {id, row->at.streamlet, row->at.log};
    struct leat_log_ref model = {stream, row->at.streamlet, row->at.log};
    if (!truth_find(scenario, ref, &log)) {
        wrong(line, "a log is described that nobody has");
        return;
    }
    const char *told = leat_log_told_state(row), *truth = state_word(&log);
    /* For a log that no node serves it only matters that the log is not called well. */
    if (!log.served ? strcmp(told, "ok") == 0 && row->code == LEAT_OK : strcmp(told, truth) != 0)
        wrong(line, "description of log %u/%u of %s: %s (%s), and it is %s", ref.streamlet, ref.log,
              log.stream, told, leat_err_name(row->code), truth);
    if (!log.served) return;
    numbers_judge(line, &log, row);
    /* A log that is damaged at its end says so, and not where it ended. */
    if (!truth_is_troubled(&log) && row->acked_offset < check_acked_end(scenario->check, model) &&
        !check_at_risk(scenario->check, model))
        wrong(line, "description of log %u/%u of %s ends at %llu, and %llu are acked",
              ref.streamlet, ref.log, log.stream, (unsigned long long)row->acked_offset,
              (unsigned long long)check_acked_end(scenario->check, model));
}

/* [name, id, settings, [log...], ...] */
static void stream_judge(struct line *line, uint32_t stream, struct leat_msg_reader *reader)
{
    const struct sim_stream *of = &line->told->scenario->streams[stream];
    struct leat_stream_settings settings;
    (void)leat_msg_read_array(reader);
    (void)leat_msg_read_string(reader);
    uint32_t id = leat_msg_read_u32(reader);
    leat_msg_settings_read(reader, &settings);
    uint32_t count = leat_msg_read_array(reader);
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        struct leat_msg_log_info row;
        leat_msg_log_info_read(reader, &row);
        if (!reader->failed) row_judge(line, stream, id, &row);
    }
    if (reader->failed || count != of->settings.streamlets * of->settings.logs)
        wrong(line, "the description of %s has %u logs", of->name, count);
}

/* ---- Kafka's metadata ---- */

static bool is_at(const struct leat_kafka_metadata_response *metadata, int32_t node,
                  const char *address)
{
    char text[80];
    for (int32_t i = 0; i < metadata->brokers.count; i++) {
        const struct leat_kafka_metadata_response_broker *broker = &metadata->brokers.at[i];
        if (broker->node_id != node) continue;
        snprintf(text, sizeof text, "%.*s:%d", (int)broker->host.bytes, broker->host.text,
                 broker->port);
        return strcmp(text, address) == 0;
    }
    return false;
}

/* What is told of replicas may be five seconds old, and one log after the other gets its copies again: each partition
 * has to be told as it is once. */
static bool partition_judge(struct line *line, uint32_t stream,
                            const struct leat_kafka_metadata_response *metadata,
                            const struct leat_kafka_metadata_response_partition *part)
{
    struct scenario *scenario = line->told->scenario;
    struct leat_log_ref ref = sim_kafka_log(scenario, stream, (uint32_t)part->partition_index);
    struct truth_log log;
    ref.stream = scenario->streams[stream].id;
    if (!truth_find(scenario, ref, &log)) return false;
    unsigned before = line->wrongs;
    bool there = log.owner && sim_serves(log.owner);
    if (there &&
        (part->error_code != 0 || !is_at(metadata, part->leader_id, log.owner->kafka_address)))
        wrong(line, "metadata of partition %d of %s: error %d, leader %d, which is not %s",
              part->partition_index, log.stream, part->error_code, part->leader_id,
              log.owner->name);
    if (!there && part->error_code == 0)
        wrong(line, "metadata of partition %d of %s: leader %d, which is away",
              part->partition_index, log.stream, part->leader_id);
    if (line->told->what == SIM_TOLD_ALL && log.served && log.in_sync > 0 &&
        part->isr_nodes.count != (int32_t)log.in_sync)
        wrong(line, "metadata of partition %d of %s: %d in sync, and it is %u",
              part->partition_index, log.stream, part->isr_nodes.count, log.in_sync);
    return line->wrongs == before;
}

static void metadata_judge(struct line *line, const struct leat_kafka_metadata_response *metadata)
{
    struct scenario *scenario = line->told->scenario;
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        const struct leat_kafka_metadata_response_topic *topic =
            i < (uint32_t)metadata->topics.count ? &metadata->topics.at[i] : NULL;
        if (!topic || topic->error_code != 0 ||
            topic->partitions.count != (int32_t)sim_kafka_partitions(scenario, i)) {
            wrong(line, "metadata of %s: error %d", scenario->streams[i].name,
                  topic ? topic->error_code : -1);
            return;
        }
        for (int32_t p = 0; p < topic->partitions.count; p++)
            if (!line->agreed[i][p])
                line->agreed[i][p] = partition_judge(line, i, metadata, &topic->partitions.at[p]);
    }
}

static void metadata_take(struct line *line, const uint8_t *bytes, size_t count)
{
    const struct leat_kafka_api *api = leat_kafka_api_find(LEAT_KAFKA_METADATA);
    const struct leat_kafka_type *type = api->response();
    struct leat_kafka_arena arena;
    struct leat_kafka_reader reader = {.at = bytes, .end = bytes + count, .arena = &arena};
    reader.version = api->last;
    (void)leat_kafka_read_i32(&reader);
    reader.flexible = true;
    leat_kafka_skip_tags(&reader);
    leat_kafka_arena_init(&arena, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    void *answer = leat_kafka_arena_take(&arena, 1, type->bytes);
    LEAT_ASSERT(answer != NULL);
    if (leat_kafka_decode(&reader, type, answer) == LEAT_OK)
        metadata_judge(line, answer);
    else
        wrong(line, "metadata can't be read");
    leat_kafka_arena_fini(&arena);
}

/* ---- a line ---- */

static void metadata_send(struct line *line)
{
    static uint8_t bytes[SIM_KAFKA_REQUEST_BYTES_MAX];
    const struct leat_kafka_api *api = leat_kafka_api_find(LEAT_KAFKA_METADATA);
    struct leat_kafka_metadata_request_topic topics[SIM_STREAMS] = {0};
    struct leat_kafka_metadata_request body = {.topics = {topics, SIM_STREAMS}};
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        topics[i].name = sim_kafka_topic_name(line->told->scenario, i);
    size_t count = sim_kafka_encode(api, api->last, 1, &body, bytes);
    line->left = 1;
    (void)line->told->actor->net.send_copy(line->conn, bytes, count);
}

/* Of each native question: how it is asked. */
static size_t question_put(struct line *line, uint32_t number, uint8_t *out)
{
    struct scenario *scenario = line->told->scenario;
    if (number == NUMBER_HELLO) return sim_ask_hello(out, "operator", -1, NUMBER_HELLO);
    if (number == NUMBER_STATUS) return sim_ask_status(out, NUMBER_STATUS);
    return sim_ask_describe(out, scenario->streams[number - NUMBER_STREAM].name, number);
}

/* What has no right answer yet is asked, on the connection that there is. */
static void line_ask(struct line *line)
{
    uint8_t bytes[SIM_ASK_BYTES_MAX * (2 + SIM_STREAMS) + SIM_GROUPS_NATIVE_BYTES];
    uint8_t *at = bytes;
    line->left = 0;
    if (line->kafka) {
        metadata_send(line);
        return;
    }
    for (uint32_t number = NUMBER_HELLO; number < NUMBER_GROUPS; number++) {
        if (!(line->due >> number & 1)) continue;
        at += question_put(line, number, at);
        line->left++;
    }
    if (line->due >> NUMBER_GROUPS) {
        sim_groups_see(line->told->scenario, &line->groups);
        for (uint32_t nth = 0; nth < SIM_GROUPS_NATIVE; nth++) {
            if (!(line->due >> (NUMBER_GROUPS + nth) & 1)) continue;
            at += sim_groups_native_ask(line->told->scenario, nth, at, NUMBER_GROUPS + nth);
            line->left++;
        }
    }
    (void)line->told->actor->net.send_copy(line->conn, bytes, (size_t)(at - bytes));
}

static uint32_t questions_all(const struct told *told)
{
    bool groups = told->what != SIM_TOLD_LOGS && !told->scenario->groups_unasked;
    uint32_t past = NUMBER_GROUPS + (groups ? SIM_GROUPS_NATIVE : 0);
    return (1u << past) - (1u << NUMBER_STATUS);
}

static void line_on_open(void *user, struct leat_conn *conn)
{
    struct line *line = user;
    (void)conn;
    line->open = true;
    line->due |= 1u << NUMBER_HELLO;
    line_ask(line);
}

static void frame_take(struct line *line, const struct leat_frame *frame)
{
    struct leat_msg_reader reader;
    struct sim_wrong of_groups = {""};
    unsigned before = line->wrongs;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    if (frame->request >= NUMBER_GROUPS)
        sim_groups_native_judge(line->told->scenario, line->server, &line->groups,
                                frame->request - NUMBER_GROUPS, frame, &of_groups);
    else if (frame->flags & LEAT_FRAME_ERROR)
        wrong(line, "request %u is refused", frame->request);
    else if (frame->request == NUMBER_STATUS)
        status_judge(line, &reader);
    else if (frame->request >= NUMBER_STREAM)
        stream_judge(line, frame->request - NUMBER_STREAM, &reader);
    if (of_groups.text[0]) wrong(line, "%s", of_groups.text);
    if (line->wrongs == before) line->due &= ~(1u << frame->request);
}

/* How many bytes the answer at the front had; 0: it is not all there. */
static size_t answer_take(struct line *line, const uint8_t *data, size_t bytes, size_t *want)
{
    struct leat_frame frame;
    if (line->kafka) {
        *want = bytes < 4 ? 4 : 4 + (size_t)leat_get_be32(data);
        if (*want > bytes) return 0;
        metadata_take(line, data + 4, *want - 4);
        return *want;
    }
    leat_err rc = leat_frame_decode(data, bytes, &frame, want);
    if (rc == LEAT_E_AGAIN) return 0;
    LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
    frame_take(line, &frame);
    return frame.frame_bytes;
}

static void line_begin(struct sim_world *world, struct sim_event *event);

/* Where each node is asked, all answers of one pass have to be right. Where one node is asked, each question has to
 * get one right answer: only what was answered wrongly is asked again. */
static void line_again(struct line *line)
{
    sim_trace(line->told->scenario->world, "told wrong, by %s: %s", line->server->name,
              line->wrong);
    if (!line->told->only) line->due = questions_all(line->told);
    sim_actor_post(line->told->actor, AGAIN_US << line->tries, line_begin, line);
    if (line->tries < TRIES_SLOWER) line->tries++;
}

static size_t line_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want_bytes)
{
    struct line *line = user;
    size_t used = 0, whole;
    *want_bytes = 0;
    while (line->left && (whole = answer_take(line, data + used, bytes - used, want_bytes)) != 0) {
        used += whole;
        *want_bytes = 0;
        if (--line->left) continue;
        line->right = line->wrongs == line->wrongs_before;
        if (!line->right) line_again(line);
        /* A connection anew may come to another core, which knows of replicas by other answers. */
        if (line->right || line->kafka || !line->told->only) line->told->actor->net.close(conn);
        return bytes;
    }
    return used;
}

static void line_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct line *line = user;
    bool waits = line->left > 0; /* else it was closed as all was right, or is asked again soon */
    (void)conn;
    line->conn = NULL;
    line->open = false;
    line->left = 0;
    if (!waits) return;
    wrong(line, "the connection ends: %s", leat_err_name(why));
    line_again(line);
}

static const struct leat_conn_handler line_handler = {line_on_open, line_on_bytes, line_on_closed};

static void line_late(struct sim_world *world, struct sim_event *event)
{
    struct line *line = event->a;
    (void)world;
    if (line->told != told_of_seed || !line->conn || !line->left || event->n != line->asked) return;
    line->told->actor->net.close(line->conn);
}

static void line_begin(struct sim_world *world, struct sim_event *event)
{
    struct line *line = event->a;
    const struct leat_net *net = &line->told->actor->net;
    (void)world;
    if (line->told != told_of_seed) return; /* nobody waits for it any more */
    line->wrongs_before = line->wrongs;
    sim_actor_post(line->told->actor, ANSWER_US, line_late, line)->n = ++line->asked;
    if (line->open) {
        line_ask(line);
        return;
    }
    line->left = 1; /* until the connection is open: nothing was answered */
    if (net->connect(net->ctx, line->kafka ? line->server->kafka_address : line->server->address,
                     &line_handler, line, &line->conn) != LEAT_OK)
        line_on_closed(line, NULL, LEAT_E_CLOSED);
}

static bool all_right(struct scenario *scenario)
{
    (void)scenario;
    for (unsigned i = 0; i < told_of_seed->count; i++)
        if (!told_of_seed->lines[i].right) return false;
    return true;
}

void sim_told_look(struct scenario *scenario, const char *when, const struct sim_server *only,
                   enum sim_told_what what)
{
    struct told *told = calloc(1, sizeof *told);
    struct leat_cluster_told *cluster = calloc(1, sizeof *cluster);
    LEAT_ASSERT(told != NULL && cluster != NULL);
    if (scenario->world->failure[0]) return;
    told->scenario = scenario;
    told->cluster = cluster;
    told->only = only;
    told->what = what;
    told->actor = sim_idle_actor(scenario->world, "told");
    told_of_seed = told;
    for (unsigned i = 0; i < 2 * scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i / 2];
        bool kafka = i % 2 == 1;
        if (!sim_serves(server) || (only && server != only)) continue;
        if (kafka && what == SIM_TOLD_LOGS) continue;
        struct line *line = &told->lines[told->count++];
        *line = (struct line){.told = told, .server = server, .kafka = kafka};
        line->due = questions_all(told);
        sim_actor_post(told->actor, 1, line_begin, line);
    }
    sim_node_log_quiet(true);
    bool right = sim_run_until(scenario, all_right, TOLD_US_MAX);
    sim_node_log_quiet(false);
    if (right) sim_node_log_look(scenario, when);
    for (unsigned i = 0; !right && i < told->count; i++)
        if (!told->lines[i].right)
            sim_fail(scenario->world, "A13 told: %s, by %s: %s", when, told->lines[i].server->name,
                     told->lines[i].wrong);
    scenario->world->faults[SIM_FAULT_TOLD_TROUBLE] += told->trouble;
    scenario->world->faults[SIM_FAULT_TOLD_LACKING] += told->lacking;
    told_of_seed = NULL;
    sim_process_die(told->actor->process, SIM_DEATH_KILL);
    if (!only) sim_groups_look(scenario, when, SIM_GROUPS);
}
