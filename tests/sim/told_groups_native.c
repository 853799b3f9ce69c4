/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of groups by the native protocol: what they have committed (GROUP_FETCH, which a node hands on to the
 * group's home), and where logs end (LOCATE). told.c asks it beside the rest. */
#include "tests/sim/told_groups.h"

#include <string.h>

#include "base/assert.h"
#include "tests/sim/truth.h"
#include "wire/frame.h"
#include "wire/message.h"

static size_t frame_end(const struct leat_msg_writer *writer, uint8_t *out, enum leat_kind kind,
                        uint32_t number)
{
    LEAT_ASSERT(!writer->overflow);
    leat_frame_encode(out, kind, LEAT_PROTOCOL_VERSION_MAX, 0, number, (uint32_t)writer->used, 0);
    return LEAT_FRAME_HEADER_BYTES + writer->used;
}

static size_t fetch_ask(const char *stored, uint8_t *out, uint32_t number)
{
    struct leat_msg_writer writer;
    struct leat_msg_group_fetch body = {.group = {stored, (uint32_t)strlen(stored)}};
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES,
                         SIM_GROUPS_NATIVE_BYTES / SIM_GROUPS_NATIVE);
    leat_msg_group_fetch_write(&writer, &body);
    return frame_end(&writer, out, LEAT_KIND_GROUP_FETCH, number);
}

static size_t ends_ask(struct scenario *scenario, uint32_t stream, uint8_t *out, uint32_t number)
{
    struct leat_msg_writer writer;
    uint32_t count = sim_kafka_partitions(scenario, stream);
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES,
                         SIM_GROUPS_NATIVE_BYTES / SIM_GROUPS_NATIVE);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, count);
    for (uint32_t p = 0; p < count; p++) {
        struct leat_msg_locate row = {.log = sim_kafka_log(scenario, stream, p),
                                      .what = LEAT_LOCATE_LATEST};
        row.log.stream = scenario->streams[stream].id;
        leat_msg_locate_write(&writer, &row);
    }
    return frame_end(&writer, out, LEAT_KIND_LOCATE, number);
}

size_t sim_groups_native_ask(struct scenario *scenario, uint32_t nth, uint8_t *out, uint32_t number)
{
    return nth < SIM_GROUPS ? fetch_ask(sim_group_name(nth), out, number)
                            : ends_ask(scenario, nth - SIM_GROUPS, out, number);
}

static void committed_judge(struct scenario *scenario, const struct sim_groups_seen *before,
                            enum sim_group group, struct leat_msg_reader *reader,
                            struct sim_wrong *wrong)
{
    struct leat_msg_group_fetched body;
    int64_t told[SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX];
    memset(told, 0xff, sizeof told); /* nothing */
    leat_msg_group_fetched_read(reader, &body);
    for (uint32_t i = 0; i < body.offset_count && !reader->failed; i++) {
        struct leat_msg_group_offset row;
        uint32_t stream;
        leat_msg_group_offset_read(reader, &row);
        if (!sim_stream_of(scenario, row.log.stream, &stream)) continue;
        const struct leat_stream_settings *has = &scenario->streams[stream].settings;
        if (row.log.streamlet < has->streamlets && row.log.log < has->logs)
            told[stream][row.log.streamlet * has->logs + row.log.log] = (int64_t)row.offset;
        else
            sim_wrong(wrong, "log %u/%u of stream %u is told of, which has no such log",
                      row.log.streamlet, row.log.log, row.log.stream);
    }
    if (reader->failed) sim_wrong(wrong, "what a stored has committed can't be read");
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        for (uint32_t p = 0; p < sim_kafka_partitions(scenario, i); p++)
            sim_groups_committed_judge(scenario, before, group, i, p, told[i][p], wrong);
}

/* ---- the parallel group ---- */

static uint64_t shares_add(uint64_t digest, uint64_t group, uint64_t offset)
{
    return (digest * 31 + group) * 31 + offset;
}

/* 0: there is no such group. */
uint64_t sim_groups_shares_digest(struct scenario *scenario)
{
    const struct leat_group *stored = truth_group_find(scenario, sim_group_name(SIM_GROUP_SHARERS));
    if (!stored) return 0;
    uint64_t digest = 1 + stored->log_count;
    for (uint32_t i = 0; i < stored->log_count; i++) {
        const struct leat_group_log *log = &stored->logs[i];
        digest = shares_add(digest, log->first_group, log->offset);
        for (uint32_t g = 0; g < log->group_count; g++)
            digest = shares_add(digest, log->groups[g].group, log->groups[g].offset);
    }
    return digest;
}

static bool is_stored(const struct leat_group_log *log, const struct leat_msg_group_offset *row)
{
    if ((uint64_t)row->group == log->first_group) return row->offset == log->offset;
    for (uint32_t g = 0; g < log->group_count; g++)
        if (log->groups[g].group == (uint64_t)row->group)
            return log->groups[g].offset == row->offset;
    return false;
}

/* Nothing is known of what was acked to its members. So where its home has not changed meanwhile, all that the home has
 * is told, and nothing else. */
static void shares_judge(struct scenario *scenario, const struct sim_groups_seen *before,
                         struct leat_msg_reader *reader, struct sim_wrong *wrong)
{
    struct leat_msg_group_fetched body;
    leat_msg_group_fetched_read(reader, &body);
    if (reader->failed) sim_wrong(wrong, "what a parallel group has committed can't be read");
    if (reader->failed || sim_groups_shares_digest(scenario) != before->shares) return;
    struct leat_group *stored = truth_group_find(scenario, sim_group_name(SIM_GROUP_SHARERS));
    uint32_t rows = 0;
    for (uint32_t i = 0; stored && i < stored->log_count; i++)
        rows += 1 + stored->logs[i].group_count;
    if (body.offset_count != rows)
        sim_wrong(wrong, "a parallel group has %u rows, and %u are told", rows, body.offset_count);
    for (uint32_t i = 0; i < body.offset_count && !wrong->text[0]; i++) {
        struct leat_msg_group_offset row;
        leat_msg_group_offset_read(reader, &row);
        const struct leat_group_log *log = leat_group_log_find(stored, row.log);
        if (reader->failed || !log || !is_stored(log, &row))
            sim_wrong(wrong, "a parallel group is told to be at %llu of segment group %lld",
                      (unsigned long long)row.offset, (long long)row.group);
    }
}

/* ---- ends ---- */

/* [[code, offset, ...]...] */
static void ends_judge(struct scenario *scenario, const struct sim_server *server,
                       const struct sim_groups_seen *before, uint32_t stream,
                       struct leat_msg_reader *reader, struct sim_wrong *wrong)
{
    uint32_t count = leat_msg_read_array(reader);
    if (count != sim_kafka_partitions(scenario, stream))
        sim_wrong(wrong, "ends of %u logs are told", count);
    for (uint32_t p = 0; p < count && !wrong->text[0]; p++) {
        struct leat_msg_located row;
        leat_msg_located_read(reader, &row);
        sim_groups_end_judge(scenario, server, before, stream, p, row.code != LEAT_OK, row.offset,
                             wrong);
    }
}

void sim_groups_native_judge(struct scenario *scenario, const struct sim_server *server,
                             const struct sim_groups_seen *before, uint32_t nth,
                             const struct leat_frame *frame, struct sim_wrong *wrong)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    if (nth >= SIM_GROUPS) {
        if (frame->flags & LEAT_FRAME_ERROR)
            sim_wrong(wrong, "ends of logs are not told");
        else
            ends_judge(scenario, server, before, nth - SIM_GROUPS, &reader, wrong);
        return;
    }
    struct truth_home home;
    truth_home_find(scenario, sim_group_name(nth), &home);
    if (home.known && !home.groups) return; /* its home is away: whatever is told */
    if (frame->flags & LEAT_FRAME_ERROR)
        sim_wrong(wrong, "what stored %s has committed is not told", sim_group_name(nth));
    else if (nth == SIM_GROUP_SHARERS)
        shares_judge(scenario, before, &reader, wrong);
    else
        committed_judge(scenario, before, nth, &reader, wrong);
}
