/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka by its C interface, as old as the distribution's: the scenario of python/scenario.py, with
 * the same lines on standard output. */
#include <librdkafka/rdkafka.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECORDS = 10000, PARTITIONS = 6, MEMBERS = 3, ACKED_MAX = 4096 };

static const char *broker;
static char topic[256], group[300], again[300];
static int64_t base_ms;
static char why[512];
static int not_delivered;

static bool fails(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    return false;
}

static void step(const char *feature, bool (*run)(void))
{
    why[0] = '\0';
    if (run())
        printf("ok %s\n", feature);
    else
        printf("fail %s %s\n", feature, why);
    fflush(stdout);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk;
    (void)opaque;
    if (message->err) not_delivered++;
}

/* pairs: "name", "value", ..., NULL */
static rd_kafka_t *client(rd_kafka_type_t type, ...)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", broker, why, sizeof why);
    va_list list;
    va_start(list, type);
    for (const char *name; (name = va_arg(list, const char *)) != NULL;)
        if (rd_kafka_conf_set(conf, name, va_arg(list, const char *), why, sizeof why))
            fprintf(stderr, "%s: %s\n", name, why);
    va_end(list);
    if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof why);
    if (rk == NULL) exit(2);
    if (type == RD_KAFKA_CONSUMER) rd_kafka_poll_set_consumer(rk);
    return rk;
}

/* ---- topics ---- */

/* exists: that is fine: made by a producer itself, when it asked for the partitions. */
static bool topic_create(const char *name, int partitions, bool exists)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_NewTopic_t *new_topic = rd_kafka_NewTopic_new(name, partitions, 1, why, sizeof why);
    rd_kafka_CreateTopics(rk, &new_topic, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 30000);
    size_t count = 0;
    const rd_kafka_topic_result_t **results =
        event
            ? rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)
            : NULL;
    rd_kafka_resp_err_t err =
        count == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__FAIL;
    bool ok = !err || (exists && err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS);
    if (!ok) fails("create: %s", rd_kafka_err2name(err));
    if (event) rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(new_topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return ok;
}

static bool topic_delete(const char *name)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *old = rd_kafka_DeleteTopic_new(name);
    rd_kafka_DeleteTopics(rk, &old, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 30000);
    size_t count = 0;
    const rd_kafka_topic_result_t **results =
        event
            ? rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count)
            : NULL;
    bool ok = count == 1 && rd_kafka_topic_result_error(results[0]) == 0;
    if (!ok)
        fails("delete: %s",
              count ? rd_kafka_err2name(rd_kafka_topic_result_error(results[0])) : "no answer");
    if (event) rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(old);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return ok;
}

static bool create(void)
{
    return topic_create(topic, PARTITIONS, false);
}

/* ---- records ---- */

struct text {
    char key[32], value[256], number[16];
    size_t value_bytes;
};

static struct text text_of(int i)
{
    struct text t;
    snprintf(t.key, sizeof t.key, "key-%d", i % 101);
    int at = snprintf(t.value, sizeof t.value, "value-%d-", i);
    memset(t.value + at, 'x', (size_t)(i % 200));
    t.value_bytes = (size_t)at + (size_t)(i % 200);
    snprintf(t.number, sizeof t.number, "%d", i);
    return t;
}

static bool produce(const char *codec, int first, int end)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, "compression.type", codec, "enable.idempotence",
                            "true", "linger.ms", "5", NULL);
    not_delivered = 0;
    for (int i = first; i < end; i++) {
        struct text t = text_of(i);
        rd_kafka_headers_t *headers = rd_kafka_headers_new(2);
        rd_kafka_header_add(headers, "number", -1, t.number, -1);
        rd_kafka_header_add(headers, "empty", -1, "", 0);
        rd_kafka_resp_err_t err = rd_kafka_producev(
            rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(i % PARTITIONS),
            RD_KAFKA_V_KEY(t.key, strlen(t.key)), RD_KAFKA_V_VALUE(t.value, t.value_bytes),
            RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_TIMESTAMP(base_ms + i),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (err) return fails("produce: %s", rd_kafka_err2name(err));
    }
    rd_kafka_resp_err_t err = rd_kafka_flush(rk, 60000);
    rd_kafka_destroy(rk);
    if (err || not_delivered)
        return fails("flush: %s, %d not delivered", rd_kafka_err2name(err), not_delivered);
    return true;
}

static bool none(void)
{
    return produce("none", 0, 2000);
}
static bool gzip(void)
{
    return produce("gzip", 2000, 4000);
}
static bool snappy(void)
{
    return produce("snappy", 4000, 6000);
}
static bool lz4(void)
{
    return produce("lz4", 6000, 8000);
}
static bool zstd(void)
{
    return produce("zstd", 8000, RECORDS);
}

static rd_kafka_topic_partition_list_t *partitions_of(const char *name, int count, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    for (int p = 0; p < count; p++)
        rd_kafka_topic_partition_list_add(list, name, p)->offset = offset;
    return list;
}

static bool record_same(const rd_kafka_message_t *m)
{
    int i = (int)m->offset * PARTITIONS + m->partition;
    struct text t = text_of(i);
    rd_kafka_headers_t *headers = NULL;
    const void *number = NULL, *empty = NULL;
    size_t number_bytes = 0, empty_bytes = 1;
    const char *name, *name2;
    rd_kafka_timestamp_type_t kind;
    bool same = m->key_len == strlen(t.key) && memcmp(m->key, t.key, m->key_len) == 0 &&
                m->len == t.value_bytes && memcmp(m->payload, t.value, m->len) == 0 &&
                rd_kafka_message_timestamp(m, &kind) == base_ms + i &&
                rd_kafka_message_headers(m, &headers) == 0 && rd_kafka_header_cnt(headers) == 2 &&
                rd_kafka_header_get_all(headers, 0, &name, &number, &number_bytes) == 0 &&
                rd_kafka_header_get_all(headers, 1, &name2, &empty, &empty_bytes) == 0 &&
                strcmp(name, "number") == 0 && strcmp(name2, "empty") == 0 && empty_bytes == 0 &&
                number_bytes == strlen(t.number) && memcmp(number, t.number, number_bytes) == 0;
    return same || fails("record %d differs", i);
}

static bool bytes(void)
{
    static bool seen[RECORDS];
    rd_kafka_t *rk =
        client(RD_KAFKA_CONSUMER, "group.id", "none", "enable.auto.commit", "false", NULL);
    rd_kafka_topic_partition_list_t *list = partitions_of(topic, PARTITIONS, 0);
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    int count = 0;
    bool ok = true;
    for (int64_t until = now_ms() + 30000; ok && count < RECORDS && now_ms() < until;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);
        if (m == NULL) continue;
        if (m->err) {
            ok = fails("consume: %s", rd_kafka_message_errstr(m));
        } else {
            int i = (int)m->offset * PARTITIONS + m->partition;
            ok = i < RECORDS && !seen[i] ? record_same(m)
                                         : fails("record %d is twice, or nobody's", i);
            if (ok) seen[i] = true;
            count++;
        }
        rd_kafka_message_destroy(m);
    }
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return ok && (count == RECORDS || fails("%d of %d records were read", count, RECORDS));
}

/* ---- group ---- */

static bool member_commit(rd_kafka_t *rk)
{
    rd_kafka_resp_err_t err = rd_kafka_commit(rk, NULL, 0);
    return err == 0 || err == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
           err == RD_KAFKA_RESP_ERR__NO_OFFSET || err == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION ||
           fails("commit: %s", rd_kafka_err2name(err));
}

static bool members_run(void)
{
    static bool seen[RECORDS];
    rd_kafka_t *rks[MEMBERS];
    int reads[MEMBERS] = {0}, count = 0;
    rd_kafka_topic_partition_list_t *list = partitions_of(topic, 1, 0);
    bool ok = true;
    for (int m = 0; m < MEMBERS; m++) {
        rks[m] = client(RD_KAFKA_CONSUMER, "group.id", group, "enable.auto.commit", "false",
                        "auto.offset.reset", "earliest", "session.timeout.ms", "6000",
                        "heartbeat.interval.ms", "1000", NULL);
        rd_kafka_subscribe(rks[m], list);
    }
    rd_kafka_topic_partition_list_destroy(list);
    int64_t until = now_ms() + 90000;
    while (ok && count < RECORDS && now_ms() < until) {
        /* Nobody hurries before all have begun: on a busy machine one starts seconds after the others. */
        const bool begun = reads[0] > 0 && reads[1] > 0 && reads[2] > 0;
        for (int m = 0; m < MEMBERS && ok; m++) {
            int got = 0;
            for (rd_kafka_message_t *one; rks[m] && got < (begun ? 100 : 10) &&
                                          (one = rd_kafka_consumer_poll(rks[m], 20));) {
                int i = (int)one->offset * PARTITIONS + one->partition;
                if (one->err) {
                    ok = fails("consume: %s", rd_kafka_message_errstr(one));
                } else {
                    count += !seen[i];
                    seen[i] = true;
                    got++;
                }
                rd_kafka_message_destroy(one);
            }
            if (got > 0) ok = ok && member_commit(rks[m]);
            reads[m] += got;
        }
        if (rks[0] && begun && count > RECORDS / 4) {
            rd_kafka_consumer_close(rks[0]);
            rd_kafka_destroy(rks[0]);
            rks[0] = NULL;
        }
    }
    for (int m = 0; m < MEMBERS; m++) {
        if (rks[m] == NULL) continue;
        rd_kafka_consumer_close(rks[m]);
        rd_kafka_destroy(rks[m]);
    }
    if (!ok) return false;
    if (count < RECORDS) return fails("only %d of %d records were read", count, RECORDS);
    return (reads[1] && reads[2]) ||
           fails("a member read nothing: %d %d %d", reads[0], reads[1], reads[2]);
}

static int64_t offset_of(int number, int partition)
{
    return (number - partition + PARTITIONS - 1) / PARTITIONS;
}

static bool offsets_are(const rd_kafka_topic_partition_list_t *list, int of)
{
    for (int p = 0; p < list->cnt; p++)
        if (list->elems[p].offset != offset_of(of, p))
            return fails("partition %d: %lld, not %lld", p, (long long)list->elems[p].offset,
                         (long long)offset_of(of, p));
    return true;
}

static bool commit(void)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, "group.id", group, NULL);
    rd_kafka_topic_partition_list_t *list = partitions_of(topic, PARTITIONS, 0);
    rd_kafka_resp_err_t err = rd_kafka_committed(rk, list, 20000);
    bool ok = err ? fails("%s", rd_kafka_err2name(err)) : offsets_are(list, RECORDS);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return ok;
}

static bool time_find(int at)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, "group.id", "none", NULL);
    rd_kafka_topic_partition_list_t *list = partitions_of(topic, PARTITIONS, base_ms + at);
    rd_kafka_resp_err_t err = rd_kafka_offsets_for_times(rk, list, 20000);
    bool ok = err ? fails("%s", rd_kafka_err2name(err)) : offsets_are(list, at);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return ok;
}

static bool seek_time(void)
{
    /* One in each codec's part: in the middle of a compressed batch as a rule. */
    bool ok = true;
    for (int at = 1000; ok && at < RECORDS; at += 2000)
        ok = time_find(at);
    return ok;
}

/* ---- records deleted ---- */

/* Inside a batch too; of the last partition all. */
static int64_t trimmed_to(int partition)
{
    return partition == PARTITIONS - 1 ? offset_of(RECORDS, partition) : 100 + 7 * partition;
}

/* What is behind is there, and nothing else. */
static bool trimmed_read(rd_kafka_t *rk)
{
    static bool seen[RECORDS];
    rd_kafka_topic_partition_list_t *list = partitions_of(topic, PARTITIONS, 0);
    int want = 0, count = 0;
    bool ok = true;
    for (int p = 0; ok && p < PARTITIONS; p++) {
        int64_t low, high;
        list->elems[p].offset = trimmed_to(p);
        want += (int)(offset_of(RECORDS, p) - trimmed_to(p));
        rd_kafka_resp_err_t err =
            rd_kafka_query_watermark_offsets(rk, topic, p, &low, &high, 20000);
        if (err || low != trimmed_to(p) || high != offset_of(RECORDS, p))
            ok = fails("partition %d: %s, begins at %lld", p, rd_kafka_err2name(err),
                       (long long)low);
    }
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    for (int64_t until = now_ms() + 30000; ok && count < want && now_ms() < until;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);
        if (m == NULL) continue;
        int i = (int)m->offset * PARTITIONS + m->partition;
        if (m->err || i >= RECORDS || m->offset < trimmed_to(m->partition) || seen[i])
            ok = fails("offset %lld of partition %d: %s", (long long)m->offset, m->partition,
                       rd_kafka_err2name(m->err));
        else
            seen[i] = true;
        count++;
        rd_kafka_message_destroy(m);
    }
    return ok && (count == want || fails("%d records are left, not %d", count, want));
}

static bool trim(void)
{
    rd_kafka_t *rk =
        client(RD_KAFKA_CONSUMER, "group.id", "none", "enable.auto.commit", "false", NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_topic_partition_list_t *list = partitions_of(topic, PARTITIONS, 0);
    for (int p = 0; p < PARTITIONS; p++)
        list->elems[p].offset = trimmed_to(p);
    rd_kafka_DeleteRecords_t *records = rd_kafka_DeleteRecords_new(list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_DeleteRecords(rk, &records, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 30000);
    const rd_kafka_DeleteRecords_result_t *result =
        event ? rd_kafka_event_DeleteRecords_result(event) : NULL;
    const rd_kafka_topic_partition_list_t *done =
        result ? rd_kafka_DeleteRecords_result_offsets(result) : NULL;
    bool ok = done != NULL && done->cnt == PARTITIONS;
    if (!ok) fails("delete records: %s", event ? rd_kafka_event_error_string(event) : "no answer");
    for (int i = 0; ok && i < done->cnt; i++)
        if (done->elems[i].err || done->elems[i].offset != trimmed_to(done->elems[i].partition))
            ok = fails("partition %d: %s", done->elems[i].partition,
                       rd_kafka_err2name(done->elems[i].err));
    if (event) rd_kafka_event_destroy(event);
    rd_kafka_DeleteRecords_destroy(records);
    rd_kafka_queue_destroy(queue);
    ok = ok && trimmed_read(rk);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return ok;
}

/* ---- a topic made anew ---- */

static bool send_one(rd_kafka_t *rk, const char *value)
{
    not_delivered = 0;
    rd_kafka_resp_err_t err =
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(again), RD_KAFKA_V_PARTITION(0),
                          RD_KAFKA_V_VALUE((void *)value, strlen(value)),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    if (!err) err = rd_kafka_flush(rk, 30000);
    return !err && not_delivered == 0;
}

static bool again_read(const int *acked, int acked_count)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, "group.id", "none", "enable.auto.commit", "false",
                            "enable.partition.eof", "true", NULL);
    rd_kafka_topic_partition_list_t *list = partitions_of(again, 1, 0);
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    int at = 0;
    bool ok = true, end = false;
    for (int64_t until = now_ms() + 20000; ok && !end && now_ms() < until;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);
        if (m == NULL) continue;
        char value[64] = "", want[64] = "";
        if (!m->err)
            memcpy(value, m->payload, m->len < sizeof value - 1 ? m->len : sizeof value - 1);
        if (at < acked_count) snprintf(want, sizeof want, "after-%d", acked[at]);
        end = m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        if (strncmp(value, "before", 6) == 0) ok = fails("a record of the deleted topic came back");
        if (!m->err && strcmp(value, want) == 0) at++;
        rd_kafka_message_destroy(m);
    }
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return ok && (at == acked_count || fails("acknowledged records are missing or out of order"));
}

/* What a program does between two sends. */
static void linger(rd_kafka_t *rk, int ms)
{
    for (int64_t until = now_ms() + ms, left; (left = until - now_ms()) > 0;)
        rd_kafka_poll(rk, (int)left);
}

static bool recreate(void)
{
    static int acked[ACKED_MAX];
    int acked_count = 0;
    char value[64];
    if (!topic_create(again, 1, false)) return false;
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, "enable.idempotence", "true", "message.timeout.ms",
                            "10000", NULL);
    for (int i = 0; i < 50; i++) {
        snprintf(value, sizeof value, "before-%d", i);
        if (!send_one(rk, value)) return fails("before the deletion");
    }
    if (!topic_delete(again)) return false; /* its answer is the event: the name is free */
    if (!topic_create(again, 1, true)) return false;
    int64_t until = now_ms() + 60000;
    for (int n = 0, row = 0; row < 20 && acked_count < ACKED_MAX; n++) {
        if (now_ms() > until) return fails("the producer does not go on");
        snprintf(value, sizeof value, "after-%d", n);
        bool ok = send_one(rk, value);
        row = ok ? row + 1 : 0;
        if (ok) acked[acked_count++] = n;
        if (!ok) linger(rk, 200);
    }
    rd_kafka_destroy(rk);
    return again_read(acked, acked_count);
}

static bool delete (void)
{
    return topic_delete(topic);
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    broker = argv[1];
    snprintf(topic, sizeof topic, "%s", argv[2]);
    snprintf(group, sizeof group, "%s-group", topic);
    snprintf(again, sizeof again, "%s-again", topic);
    base_ms = now_ms() - RECORDS - 1000;
    step("create", create);
    step("none", none);
    step("gzip", gzip);
    step("snappy", snappy);
    step("lz4", lz4);
    step("zstd", zstd);
    step("bytes", bytes);
    step("group", members_run);
    step("commit", commit);
    step("time", seek_time);
    step("trim", trim);
    step("recreate", recreate);
    step("delete", delete);
    return 0;
}
