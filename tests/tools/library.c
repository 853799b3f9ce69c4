/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a program meets it that makes mistakes: each is refused by a code and a sentence, and nothing
 * that was fetched is lost by it. Against the server of LEAT_BROKERS, with the public headers alone. */
#include <leat/consumer.h>
#include <leat/producer.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                    \
        failures++;                                                                                \
    } while (0)

enum { WAIT_MS = 30000, RECORDS = 1000, HUGE_BYTES = 3 << 20, SEEKS = 50 };

static bool is(leat_code code, const char *name)
{
    return strcmp(leat_code_name(code), name) == 0;
}

/* Refused at once or by the server: the result says why either way. */
static void refused(leat_producer *producer, const char *stream, const leat_produce_record *record,
                    const char *name)
{
    leat_result result = {0, 0, 0, 0, "stale"};
    CHECK(is(leat_produce_wait(producer, stream, record, &result), name));
    CHECK(is(result.code, name) && result.offset == UINT64_MAX);
    CHECK(result.text && strcmp(result.text, leat_strerror(result.code)) == 0);
}

static void produce(const char *stream)
{
    leat_message message;
    leat_producer_options options;
    memset(&options, 0, sizeof options);
    CHECK(!leat_producer_open(&options, &message) && strstr(message.text, "options_init"));
    leat_producer_options_init(&options);
    options.brokers = "nonsense";
    CHECK(!leat_producer_open(&options, &message) && strstr(message.text, "nonsense"));
    options.brokers = NULL;
    options.buffer_bytes = 4096; /* less than the records below: leat_produce() has to wait */
    leat_producer *producer = leat_producer_open(&options, &message);
    CHECK(producer);
    if (!producer) return;
    for (int i = 0; i < RECORDS; i++) {
        leat_produce_record record = {.value = "value", .value_bytes = 5, .streamlet = i % 4};
        CHECK(leat_produce(producer, stream, &record, NULL, NULL) == 0);
    }
    CHECK(leat_producer_flush(producer, WAIT_MS) == 0);
    leat_produce_record small = {.value = "x", .value_bytes = 1, .streamlet = -1};
    refused(producer, "", &small, "BAD_NAME");
    refused(producer, "bad name", &small, "BAD_NAME");
    small.streamlet = 77;
    refused(producer, stream, &small, "UNKNOWN_LOG");
    char *bytes = calloc(1, HUGE_BYTES);
    leat_produce_record large = {.value = bytes, .value_bytes = HUGE_BYTES, .streamlet = -1};
    if (bytes) refused(producer, stream, &large, "TOO_LARGE");
    free(bytes);
    leat_producer_close(producer);
}

static int read_all(leat_consumer *consumer)
{
    int records = 0;
    for (;;) {
        leat_code code = 0;
        if (leat_consumer_next(consumer, 1000, &code)) {
            records++;
            continue;
        }
        CHECK(code == 0);
        if (code || leat_consumer_at_end(consumer)) return records;
    }
}

static void consume(const char *stream)
{
    leat_message message;
    leat_code code = 0;
    CHECK(!leat_consumer_open(NULL, NULL, WAIT_MS, &message) && is(message.code, "BAD_NAME"));
    leat_consumer *consumer = leat_consumer_open(stream, NULL, WAIT_MS, &message);
    CHECK(consumer);
    if (!consumer) return;
    /* One record of one partition is handed over, more is on its way or there; then others are sought. */
    const leat_record_view *record = leat_consumer_next(consumer, WAIT_MS, &code);
    CHECK(record && code == 0);
    int64_t other = record ? (record->partition + 1) % 4 : 0;
    CHECK(is(leat_consumer_seek(consumer, 4, LEAT_FROM_EARLIEST, 0), "UNKNOWN_LOG"));
    CHECK(is(leat_consumer_seek(consumer, other, LEAT_FROM_OFFSET, -1), "INVALID"));
    CHECK(leat_consumer_seek(consumer, other, LEAT_FROM_OFFSET, 0) == 0);
    CHECK(read_all(consumer) == RECORDS - 1);
    for (uint32_t round = 0; round < SEEKS; round++) {
        CHECK(leat_consumer_seek(consumer, round % 4, LEAT_FROM_OFFSET, RECORDS / 4 - 10) == 0);
        CHECK(read_all(consumer) == 10);
    }
    CHECK(is(leat_consumer_commit(consumer, WAIT_MS, &message), "INVALID") &&
          strstr(message.text, "group"));
    leat_consumer_close(consumer);
    leat_consumer_options options;
    leat_consumer_options_init(&options);
    options.from = LEAT_FROM_COMMITTED;
    CHECK(!leat_consumer_open(stream, &options, WAIT_MS, &message) &&
          strstr(message.text, "group"));
    leat_consumer_options_init(&options);
    options.min_bytes = options.fetch_bytes + 1;
    CHECK(!leat_consumer_open(stream, &options, WAIT_MS, &message) &&
          strstr(message.text, "min_bytes"));
    options.min_bytes = options.fetch_bytes; /* never reached: what there is comes after wait_ms */
    options.wait_ms = 50;
    consumer = leat_consumer_open(stream, &options, WAIT_MS, &message);
    CHECK(consumer && read_all(consumer) == RECORDS);
    leat_consumer_close(consumer);
    leat_consumer_options_init(&options);
    options.group = "shared";
    options.group_mode = LEAT_GROUP_PARALLEL;
    consumer = leat_consumer_open(stream, &options, WAIT_MS, &message);
    CHECK(consumer && is(leat_consumer_seek(consumer, -1, LEAT_FROM_EARLIEST, 0), "UNSUPPORTED"));
    const leat_app_offset begin = {0, 0, 0};
    CHECK(consumer &&
          is(leat_consumer_seek_app_offset(consumer, 0, &begin, WAIT_MS, &message), "UNSUPPORTED"));
    if (consumer) CHECK(read_all(consumer) == RECORDS);
    leat_consumer_close(consumer);
}

/* Where each record lies leads to its batch, on any partition; views stay valid meanwhile; the other partitions
 * go on where they were; what is not there is refused, and changes nothing. */
static void consume_by_address(const char *stream)
{
    enum { KEPT = 5 };
    leat_message message;
    leat_code code = 0;
    leat_consumer *consumer = leat_consumer_open(stream, NULL, WAIT_MS, &message);
    CHECK(consumer);
    if (!consumer) return;
    leat_app_offset at[KEPT], same;
    leat_record_view kept[KEPT];
    memset(at, 0, sizeof at);
    memset(kept, 0, sizeof kept);
    for (int i = 0; i < RECORDS; i++) {
        const leat_record_view *record = leat_consumer_next(consumer, WAIT_MS, &code);
        CHECK(record && code == 0);
        if (!record) break;
        if (i % (RECORDS / KEPT) != 7) continue;
        kept[i / (RECORDS / KEPT)] = *record;
        CHECK(leat_consumer_app_offset(consumer, record, WAIT_MS, &at[i / (RECORDS / KEPT)],
                                       &message) == 0);
        CHECK(record->value_bytes == 5 && memcmp(record->value, "value", 5) == 0);
        CHECK(leat_consumer_app_offset(consumer, record, 0, &same, NULL) ==
              0); /* not asked again */
        CHECK(memcmp(&same, &at[i / (RECORDS / KEPT)], sizeof same) == 0);
    }
    for (int i = 0; i < KEPT; i++) {
        CHECK(leat_consumer_seek_app_offset(consumer, kept[i].partition, &at[i], WAIT_MS,
                                            &message) == 0);
        const leat_record_view *record = leat_consumer_next(consumer, WAIT_MS, &code);
        CHECK(record && record->partition == kept[i].partition);
        CHECK(record && record->offset <= kept[i].offset);
        while (record && record->offset < kept[i].offset)
            record = leat_consumer_next(consumer, WAIT_MS, &code);
        CHECK(record && record->offset == kept[i].offset);
        if (record) CHECK(RECORDS / 4 - 1 - record->offset == (uint64_t)read_all(consumer));
    }
    leat_app_offset wrong = at[0];
    wrong.position += 8;
    CHECK(is(leat_consumer_seek_app_offset(consumer, kept[0].partition, &wrong, WAIT_MS, &message),
             "OFFSET_OUT_OF_RANGE"));
    CHECK(strstr(message.text, "no batch begins there") &&
          strstr(message.text, "the log goes from"));
    CHECK(is(leat_consumer_seek_app_offset(consumer, 4, &at[0], WAIT_MS, &message), "UNKNOWN_LOG"));
    CHECK(is(leat_consumer_seek_app_offset(consumer, -1, &at[0], WAIT_MS, NULL), "INVALID"));
    kept[0].offset = 1u << 30;
    CHECK(is(leat_consumer_app_offset(consumer, &kept[0], WAIT_MS, &same, &message),
             "OFFSET_OUT_OF_RANGE"));
    CHECK(read_all(consumer) == 0 && !leat_consumer_note_next(consumer, &message));
    leat_consumer_close(consumer);
    leat_consumer_options options;
    leat_consumer_options_init(&options);
    options.streamlet = 2;
    consumer = leat_consumer_open(stream, &options, WAIT_MS, &message);
    CHECK(consumer && read_all(consumer) == RECORDS / 4);
    wrong = (leat_app_offset){0, 0, 0};
    CHECK(consumer && leat_consumer_seek_app_offset(consumer, -1, &wrong, WAIT_MS, &message) == 0);
    if (consumer) CHECK(read_all(consumer) == RECORDS / 4);
    leat_consumer_close(consumer);
}

static void *produce_slowly(void *arg)
{
    leat_message message;
    leat_producer *producer = leat_producer_open(NULL, &message);
    CHECK(producer);
    for (int i = 0; producer && i < RECORDS; i++) {
        leat_produce_record record = {.value = "more", .value_bytes = 4, .streamlet = i % 4};
        CHECK(leat_produce(producer, arg, &record, NULL, NULL) == 0);
        if (i % 10 == 0) CHECK(leat_producer_flush(producer, WAIT_MS) == 0);
    }
    leat_producer_close(producer);
    return NULL;
}

/* A reader that waits on the descriptor alone misses no record, however they come. */
static void consume_by_descriptor(const char *stream)
{
    leat_message message;
    leat_consumer_options options;
    leat_consumer_options_init(&options);
    options.from = LEAT_FROM_LATEST;
    options.wait_ms =
        WAIT_MS; /* nothing but the records themselves makes the descriptor readable */
    leat_consumer *consumer = leat_consumer_open(stream, &options, WAIT_MS, &message);
    CHECK(consumer);
    if (!consumer) return;
    pthread_t thread;
    if (pthread_create(&thread, NULL, produce_slowly, (void *)(uintptr_t)stream)) abort();
    struct pollfd descriptor = {.fd = leat_consumer_fd(consumer), .events = POLLIN};
    int records = 0;
    while (records < RECORDS) {
        leat_code code = 0;
        int ready = poll(&descriptor, 1, WAIT_MS);
        CHECK(ready == 1);
        if (ready != 1) break;
        while (leat_consumer_next(consumer, 0, &code))
            records++;
        CHECK(code == 0);
    }
    CHECK(records == RECORDS);
    pthread_join(thread, NULL);
    leat_consumer_close(consumer);
}

/* Commits in a group: the next member goes on behind what was handed over, also after a seek. */
static void consume_in_turns(const char *stream)
{
    leat_message message;
    leat_consumer_options options;
    leat_consumer_options_init(&options);
    options.group = "turns";
    options.streamlet = -1;
    int read = 0;
    for (int turn = 0; turn < 3; turn++) {
        leat_code code = 0;
        leat_consumer *consumer = leat_consumer_open(stream, &options, WAIT_MS, &message);
        CHECK(consumer);
        if (!consumer) return;
        for (int i = 0; i < 100; i++)
            read += leat_consumer_next(consumer, WAIT_MS, &code) != NULL;
        CHECK(code == 0);
        CHECK(leat_consumer_commit(consumer, WAIT_MS, &message) == 0);
        if (turn == 2) read += read_all(consumer);
        if (turn == 2) CHECK(leat_consumer_commit(consumer, WAIT_MS, &message) == 0);
        leat_consumer_close(consumer);
    }
    CHECK(read == 2 * RECORDS);
    leat_consumer *consumer = leat_consumer_open(stream, &options, WAIT_MS, &message);
    CHECK(consumer);
    if (!consumer) return;
    CHECK(read_all(consumer) == 0);
    CHECK(leat_consumer_seek(consumer, 1, LEAT_FROM_OFFSET, 2 * RECORDS / 4 - 7) == 0);
    CHECK(read_all(consumer) == 7);
    leat_consumer_close(consumer);
}

int main(int argc, char **argv)
{
    const char *stream = argc > 1 ? argv[1] : "library";
    produce(stream);
    consume(stream);
    consume_by_address(stream);
    consume_by_descriptor(stream);
    consume_in_turns(stream);
    return failures ? 1 : 0;
}
