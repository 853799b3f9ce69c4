/* SPDX-License-Identifier: Apache-2.0 */
/* Print a stream from its beginning to its end.
 *
 *   cc consume.c $(pkg-config --cflags --libs leat) -o consume && ./consume readings
 */
#include <leat/consumer.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    const char *stream = argc > 1 ? argv[1] : "readings";
    leat_consumer_options options;
    leat_consumer_options_init(&options);
    options.from = LEAT_FROM_EARLIEST;

    leat_message message;
    leat_consumer *consumer = leat_consumer_open(stream, &options, 10000, &message);
    if (!consumer) {
        fprintf(stderr, "%s\n", message.text);
        return 1;
    }
    int failed = 0;
    while (!failed) {
        leat_code code = 0;
        /* The record is a view, valid until the next call. */
        const leat_record_view *record = leat_consumer_next(consumer, 1000, &code);
        if (record) {
            printf("%u:%llu %.*s\n", record->partition, (unsigned long long)record->offset,
                   (int)record->value_bytes, (const char *)record->value);
        } else if (code) {
            leat_consumer_stats stats;
            leat_consumer_stats_get(consumer, &stats); /* what happened, with names and offsets */
            fprintf(stderr, "%s\n", stats.last_text[0] ? stats.last_text : leat_strerror(code));
            failed = 1;
        } else if (leat_consumer_at_end(consumer)) {
            break;
        }
    }
    leat_consumer_close(consumer);
    return failed;
}
