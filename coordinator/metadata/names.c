/* SPDX-License-Identifier: Apache-2.0 */
/* What names and settings a stream may have. */
#include "coordinator/metadata/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool name_char_ok(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

leat_err leat_stream_name_check(const char *name, size_t bytes, struct leat_error *error)
{
    if (bytes == 0) return leat_error_set(error, LEAT_E_BAD_NAME, "a stream's name is empty");
    if (bytes > LEAT_STREAM_NAME_BYTES_MAX)
        return leat_error_set(error, LEAT_E_BAD_NAME,
                              "a stream's name has %zu bytes; at most %d are allowed", bytes,
                              LEAT_STREAM_NAME_BYTES_MAX);
    for (size_t i = 0; i < bytes; i++) {
        if (name_char_ok(name[i])) continue;
        char byte[8];
        bool shown = name[i] >= ' ' && name[i] <= '~';
        snprintf(byte, sizeof byte, shown ? "'%c'" : "0x%02x", (unsigned char)name[i]);
        return leat_error_set(error, LEAT_E_BAD_NAME,
                              "byte %zu of the stream's name is %s; letters, digits, '.', '_' and "
                              "'-' are allowed",
                              i + 1, byte);
    }
    if ((bytes == 1 && name[0] == '.') || (bytes == 2 && name[0] == '.' && name[1] == '.'))
        return leat_error_set(error, LEAT_E_BAD_NAME, "a stream can't be named '%.*s'", (int)bytes,
                              name);
    return LEAT_OK;
}

static leat_err settings_shape_complete(struct leat_stream_settings *settings, uint32_t cores,
                                        struct leat_error *error)
{
    if (settings->streamlets == 0) settings->streamlets = 1;
    if (settings->streamlets > LEAT_STREAMLETS_MAX)
        return leat_error_set(error, LEAT_E_INVALID,
                              "%" PRIu32 " streamlets were asked for; at most %d are allowed",
                              settings->streamlets, LEAT_STREAMLETS_MAX);
    if (settings->logs == 0) settings->logs = cores == 0 ? 1 : cores;
    if (settings->logs > LEAT_LOGS_MAX)
        return leat_error_set(error, LEAT_E_INVALID,
                              "%" PRIu32 " logs per streamlet were asked for; at most %d are "
                              "allowed",
                              settings->logs, LEAT_LOGS_MAX);
    if ((uint64_t)settings->streamlets * settings->logs > LEAT_STREAM_LOGS_MAX)
        return leat_error_set(error, LEAT_E_INVALID,
                              "%" PRIu32 " streamlets of %" PRIu32 " logs are %" PRIu64
                              " logs; at most %d are allowed in one stream",
                              settings->streamlets, settings->logs,
                              (uint64_t)settings->streamlets * settings->logs,
                              LEAT_STREAM_LOGS_MAX);
    return LEAT_OK;
}

leat_err leat_stream_settings_complete(struct leat_stream_settings *settings, uint32_t cores,
                                       struct leat_error *error)
{
    leat_err rc = settings_shape_complete(settings, cores, error);
    if (rc != LEAT_OK) return rc;
    if (settings->copies == 0) settings->copies = 1;
    if (settings->copies > LEAT_COPIES_MAX)
        return leat_error_set(error, LEAT_E_INVALID,
                              "%" PRIu32 " copies were asked for; at most %d are allowed",
                              settings->copies, LEAT_COPIES_MAX);
    if (settings->min_copies == 0) settings->min_copies = settings->copies / 2 + 1;
    if (settings->min_copies > settings->copies)
        return leat_error_set(error, LEAT_E_INVALID,
                              "min-copies %" PRIu32 " is more than copies %" PRIu32,
                              settings->min_copies, settings->copies);
    if (settings->durability == LEAT_DURABILITY_DEFAULT)
        settings->durability = LEAT_DURABILITY_DISK; /* all copies are on one host */
    if (settings->durability != LEAT_DURABILITY_MEMORY &&
        settings->durability != LEAT_DURABILITY_DISK)
        return leat_error_set(error, LEAT_E_INVALID, "durability %d is neither memory nor disk",
                              (int)settings->durability);
    if (settings->segment_bytes_max == 0) settings->segment_bytes_max = LEAT_SEGMENT_BYTES_MAX;
    uint32_t bytes = settings->segment_bytes_max;
    if (bytes < LEAT_SEGMENT_BYTES_MIN || bytes > LEAT_SEGMENT_BYTES_MAX ||
        (bytes & (bytes - 1)) != 0)
        return leat_error_set(error, LEAT_E_INVALID,
                              "segment bytes %" PRIu32 " must be a power of two between %d and %d",
                              bytes, LEAT_SEGMENT_BYTES_MIN, LEAT_SEGMENT_BYTES_MAX);
    if (settings->batch_bytes_max == 0) settings->batch_bytes_max = LEAT_BATCH_BYTES_MAX;
    if (settings->batch_bytes_max < LEAT_BATCH_BYTES_LIMIT_MIN ||
        settings->batch_bytes_max > LEAT_BATCH_BYTES_MAX)
        return leat_error_set(
            error, LEAT_E_INVALID, "max batch bytes %" PRIu32 " must lie between %d and %d",
            settings->batch_bytes_max, LEAT_BATCH_BYTES_LIMIT_MIN, LEAT_BATCH_BYTES_MAX);
    if (settings->retention_ms < 0) settings->retention_ms = 0;
    if (settings->retention_bytes < 0) settings->retention_bytes = 0;
    return LEAT_OK;
}
