/* SPDX-License-Identifier: Apache-2.0 */
/* Load as librdkafka makes it, and what it was made of: records of 100 bytes, acks of all copies, and
 * else its defaults, as fast as it can or at a rate. tools/measure sends the same over the native
 * protocol. Built where librdkafka is.
 *
 *   rdkafka_load HOST:PORT TOPIC SECONDS [RECORDS PER SECOND]
 *
 * Prints one line of JSON: records that were acked, requests and connections that carried them.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_BYTES = 100, FLUSH_MS = 60000, STATS_MS = 100, POLL_EVERY = 256 };

static struct {
    unsigned long long acked, refused, requests, connections;
    char why[200];
} seen;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk;
    (void)opaque;
    if (message->err == 0) {
        seen.acked++;
        return;
    }
    seen.refused++;
    (void)snprintf(seen.why, sizeof seen.why, "%s", rd_kafka_err2str(message->err));
}

/* The sum of a number that each broker's part has. */
static unsigned long long sum_of(const char *json, const char *name)
{
    unsigned long long sum = 0;
    for (const char *at = json; (at = strstr(at, name)) != NULL;) {
        at += strlen(name);
        sum += strtoull(at, NULL, 10);
    }
    return sum;
}

static int on_stats(rd_kafka_t *rk, char *json, size_t bytes, void *opaque)
{
    (void)rk;
    (void)bytes;
    (void)opaque;
    seen.requests = sum_of(json, "\"Produce\":");
    seen.connections = 0;
    /* One that has carried something else only was for asking where the brokers are. */
    for (const char *at = json; (at = strstr(at, "\"Produce\":")) != NULL;) {
        at += strlen("\"Produce\":");
        seen.connections += strtoull(at, NULL, 10) > 0;
    }
    return 0;
}

static rd_kafka_t *producer_create(const char *brokers)
{
    const char *const settings[][2] = {
        {"bootstrap.servers", brokers}, {"acks", "all"}, {"statistics.interval.ms", "100"}};
    char why[300] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof why) !=
            RD_KAFKA_CONF_OK)
            fprintf(stderr, "%s\n", why);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_stats_cb(conf, on_stats);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (rk != NULL) return rk;
    fprintf(stderr, "%s\n", why);
    exit(2);
}

/* false: the producer's queue is full, or it is ahead of its rate. */
static int produce_one(rd_kafka_topic_t *topic, char *value)
{
    return rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, value, RECORD_BYTES,
                            NULL, 0, NULL) == 0;
}

static void load(rd_kafka_t *rk, const char *name, double seconds, double rate)
{
    static char value[RECORD_BYTES];
    unsigned long long sent = 0;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
    double start = now(), at = start;
    while (at - start < seconds) {
        int go_on = rate <= 0 || (double)sent < (at - start) * rate;
        for (int i = 0; i < POLL_EVERY && go_on; i++) {
            go_on = produce_one(topic, value);
            sent += go_on != 0;
        }
        (void)rd_kafka_poll(rk, go_on ? 0 : 1);
        at = now();
    }
    (void)rd_kafka_flush(rk, FLUSH_MS);
    double took = now() - start;
    (void)rd_kafka_poll(rk, 2 * STATS_MS); /* the numbers after the last request */
    (void)rd_kafka_poll(rk, 2 * STATS_MS);
    printf("{\"records\": %llu, \"refused\": %llu, \"requests\": %llu, \"connections\": %llu, "
           "\"seconds\": %.3f, \"version\": \"%s\"}\n",
           seen.acked, seen.refused, seen.requests, seen.connections, took, rd_kafka_version_str());
    rd_kafka_topic_destroy(topic);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return fprintf(stderr, "rdkafka_load HOST:PORT TOPIC SECONDS [RECORDS PER SECOND]\n"), 2;
    rd_kafka_t *rk = producer_create(argv[1]);
    load(rk, argv[2], atof(argv[3]), argc > 4 ? atof(argv[4]) : 0);
    rd_kafka_destroy(rk);
    if (seen.refused == 0) return 0;
    fprintf(stderr, "%llu records refused: %s\n", seen.refused, seen.why);
    return 1;
}
