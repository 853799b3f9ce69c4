/* SPDX-License-Identifier: Apache-2.0 */
/* Append ten sensor readings, asynchronously, and one that is waited for.
 *
 *   cc produce.c $(pkg-config --cflags --libs leat) -o produce && ./produce readings
 */
#include <leat/producer.h>

#include <stdio.h>
#include <string.h>

/* Runs on the producer's thread, once per record, in order per log. */
static void on_result(void *arg, const leat_result *result)
{
    int *failed = arg;
    if (result->code == 0) return;
    fprintf(stderr, "not appended: %s\n", result->text);
    (*failed)++;
}

int main(int argc, char **argv)
{
    const char *stream = argc > 1 ? argv[1] : "readings";
    leat_producer_options options;
    leat_producer_options_init(&options); /* brokers: $LEAT_BROKERS, else 127.0.0.1:7700 */
    options.timeout_ms = 10000;

    leat_message message;
    leat_producer *producer = leat_producer_open(&options, &message);
    if (!producer) {
        fprintf(stderr, "%s\n", message.text);
        return 1;
    }

    int failed = 0;
    for (int i = 0; i < 10; i++) {
        char value[64];
        int bytes =
            snprintf(value, sizeof value, "{\"sensor\":%d,\"celsius\":%.1f}", i % 3, 20 + i * 0.1);
        char key[16];
        int key_bytes = snprintf(key, sizeof key, "sensor-%d", i % 3);
        leat_produce_record record = {
            .key = key, /* records with the same key stay in order, in one streamlet */
            .key_bytes = (size_t)key_bytes,
            .value = value,
            .value_bytes = (size_t)bytes,
            .streamlet = -1,
        };
        leat_code code = leat_produce(producer, stream, &record, on_result, &failed);
        if (code) { /* a wrong name, say, or no server for as long as timeout_ms */
            leat_producer_stats stats;
            leat_producer_stats_get(producer, &stats);
            fprintf(stderr, "refused: %s\n",
                    stats.last_text[0] ? stats.last_text : leat_strerror(code));
            leat_producer_close(producer);
            return 1;
        }
    }

    leat_produce_record last = {.value = "done", .value_bytes = 4, .streamlet = -1};
    leat_result result;
    if (leat_produce_wait(producer, stream, &last, &result) == 0)
        printf("the last record has offset %llu\n", (unsigned long long)result.offset);
    else
        failed++;

    uint64_t open = leat_producer_flush(producer, 10000);
    printf("%d failed, %llu open\n", failed, (unsigned long long)open);
    leat_producer_close(producer);
    return failed || open ? 1 : 0;
}
