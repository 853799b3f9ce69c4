/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies of consumer sets, and of an operator's requests. */
#include "wire/message.h"

#include "wire/body.h"

#include <string.h>

static void string_write(struct leat_msg_writer *writer, struct leat_msg_string string)
{
    leat_msg_write_string(writer, string.text, string.bytes);
}

/* ---- sets; fields added later come after the list, where there is one ---- */

void leat_msg_set_join_write(struct leat_msg_writer *writer, const struct leat_msg_set_join *join)
{
    leat_msg_write_array(writer, 5);
    string_write(writer, join->set);
    string_write(writer, join->member);
    leat_msg_write_u64(writer, join->mode);
    leat_msg_write_u64(writer, join->session_ms);
    leat_msg_write_array(writer, join->stream_count);
}

void leat_msg_set_join_read(struct leat_msg_reader *reader, struct leat_msg_set_join *out)
{
    (void)leat_body_open(reader, 5);
    out->set = leat_msg_read_string(reader);
    out->member = leat_msg_read_string(reader);
    out->mode = leat_msg_read_u32(reader);
    out->session_ms = leat_msg_read_u32(reader);
    out->stream_count = leat_msg_read_array(reader);
}

void leat_msg_set_joined_write(struct leat_msg_writer *writer,
                               const struct leat_msg_set_joined *joined)
{
    leat_msg_write_array(writer, 3);
    string_write(writer, joined->member);
    leat_msg_write_u64(writer, joined->generation);
    leat_msg_write_array(writer, joined->share_count);
}

void leat_msg_set_joined_read(struct leat_msg_reader *reader, struct leat_msg_set_joined *out)
{
    (void)leat_body_open(reader, 3);
    out->member = leat_msg_read_string(reader);
    out->generation = leat_msg_read_u32(reader);
    out->share_count = leat_msg_read_array(reader);
}

void leat_msg_set_share_write(struct leat_msg_writer *writer,
                              const struct leat_msg_set_share *share)
{
    leat_msg_write_array(writer, 6);
    leat_body_log_write(writer, share->log);
    leat_msg_write_u64(writer, share->first_group);
    leat_msg_write_u64(writer, 0); /* how many groups: the series has no end */
    leat_msg_write_u64(writer, share->group_step);
}

void leat_msg_set_share_read(struct leat_msg_reader *reader, struct leat_msg_set_share *out)
{
    uint32_t more = leat_body_open(reader, 6);
    out->log = leat_body_log_read(reader);
    out->first_group = leat_msg_read_u64(reader);
    leat_msg_skip(reader);
    out->group_step = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_set_heartbeat_write(struct leat_msg_writer *writer,
                                  const struct leat_msg_set_heartbeat *heartbeat)
{
    leat_msg_write_array(writer, 3);
    string_write(writer, heartbeat->set);
    string_write(writer, heartbeat->member);
    leat_msg_write_u64(writer, heartbeat->generation);
}

void leat_msg_set_heartbeat_read(struct leat_msg_reader *reader, struct leat_msg_set_heartbeat *out)
{
    uint32_t more = leat_body_open(reader, 3);
    out->set = leat_msg_read_string(reader);
    out->member = leat_msg_read_string(reader);
    out->generation = leat_msg_read_u32(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_set_leave_write(struct leat_msg_writer *writer,
                              const struct leat_msg_set_leave *leave)
{
    leat_msg_write_array(writer, 2);
    string_write(writer, leave->set);
    string_write(writer, leave->member);
}

void leat_msg_set_leave_read(struct leat_msg_reader *reader, struct leat_msg_set_leave *out)
{
    uint32_t more = leat_body_open(reader, 2);
    out->set = leat_msg_read_string(reader);
    out->member = leat_msg_read_string(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_set_commit_write(struct leat_msg_writer *writer,
                               const struct leat_msg_set_commit *commit)
{
    leat_msg_write_array(writer, 4);
    string_write(writer, commit->set);
    string_write(writer, commit->member);
    leat_msg_write_u64(writer, commit->generation);
    leat_msg_write_array(writer, commit->offset_count);
}

void leat_msg_set_commit_read(struct leat_msg_reader *reader, struct leat_msg_set_commit *out)
{
    (void)leat_body_open(reader, 4);
    out->set = leat_msg_read_string(reader);
    out->member = leat_msg_read_string(reader);
    out->generation = leat_msg_read_u32(reader);
    out->offset_count = leat_msg_read_array(reader);
}

void leat_msg_set_offset_write(struct leat_msg_writer *writer,
                               const struct leat_msg_set_offset *offset)
{
    leat_msg_write_array(writer, 5);
    leat_body_log_write(writer, offset->log);
    leat_msg_write_i64(writer, offset->group);
    leat_msg_write_u64(writer, offset->offset);
}

void leat_msg_set_offset_read(struct leat_msg_reader *reader, struct leat_msg_set_offset *out)
{
    uint32_t more = leat_body_open(reader, 5);
    out->log = leat_body_log_read(reader);
    out->group = leat_msg_read_i64(reader);
    out->offset = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_set_fetch_write(struct leat_msg_writer *writer,
                              const struct leat_msg_set_fetch *fetch)
{
    leat_msg_write_array(writer, 2);
    string_write(writer, fetch->set);
    leat_msg_write_array(writer, fetch->log_count);
}

void leat_msg_set_fetch_read(struct leat_msg_reader *reader, struct leat_msg_set_fetch *out)
{
    (void)leat_body_open(reader, 2);
    out->set = leat_msg_read_string(reader);
    out->log_count = leat_msg_read_array(reader);
}

void leat_msg_set_fetched_write(struct leat_msg_writer *writer,
                                const struct leat_msg_set_fetched *fetched)
{
    leat_msg_write_array(writer, 2);
    leat_msg_write_u64(writer, fetched->generation);
    leat_msg_write_array(writer, fetched->offset_count);
}

void leat_msg_set_fetched_read(struct leat_msg_reader *reader, struct leat_msg_set_fetched *out)
{
    (void)leat_body_open(reader, 2);
    out->generation = leat_msg_read_u32(reader);
    out->offset_count = leat_msg_read_array(reader);
}

void leat_msg_log_ref_write(struct leat_msg_writer *writer, const struct leat_log_ref *log)
{
    leat_msg_write_array(writer, 3);
    leat_body_log_write(writer, *log);
}

void leat_msg_log_ref_read(struct leat_msg_reader *reader, struct leat_log_ref *out)
{
    uint32_t more = leat_body_open(reader, 3);
    *out = leat_body_log_read(reader);
    leat_msg_skip_n(reader, more);
}

/* ---- an operator's ---- */

void leat_msg_recover_write(struct leat_msg_writer *writer, const struct leat_msg_recover *recover)
{
    leat_msg_write_array(writer, 4);
    string_write(writer, recover->stream);
    leat_msg_write_u64(writer, recover->streamlet);
    leat_msg_write_u64(writer, recover->log);
    leat_msg_write_bool(writer, recover->accept_loss);
}

void leat_msg_recover_read(struct leat_msg_reader *reader, struct leat_msg_recover *out)
{
    uint32_t more = leat_body_open(reader, 4);
    out->stream = leat_msg_read_string(reader);
    out->streamlet = leat_msg_read_u32(reader);
    out->log = leat_msg_read_u32(reader);
    out->accept_loss = leat_msg_read_bool(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_recovered_write(struct leat_msg_writer *writer,
                              const struct leat_msg_recovered *recovered)
{
    leat_msg_write_array(writer, 1);
    leat_msg_write_u64(writer, recovered->next_offset);
}

void leat_msg_recovered_read(struct leat_msg_reader *reader, struct leat_msg_recovered *out)
{
    uint32_t more = leat_body_open(reader, 1);
    out->next_offset = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_trim_write(struct leat_msg_writer *writer, const struct leat_msg_trim *trim)
{
    leat_msg_write_array(writer, 4);
    string_write(writer, trim->stream);
    leat_msg_write_u64(writer, trim->streamlet);
    leat_msg_write_u64(writer, trim->log);
    leat_msg_write_u64(writer, trim->before);
}

void leat_msg_trim_read(struct leat_msg_reader *reader, struct leat_msg_trim *out)
{
    uint32_t more = leat_body_open(reader, 4);
    out->stream = leat_msg_read_string(reader);
    out->streamlet = leat_msg_read_u32(reader);
    out->log = leat_msg_read_u32(reader);
    out->before = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_trimmed_write(struct leat_msg_writer *writer, const struct leat_msg_trimmed *trimmed)
{
    leat_msg_write_array(writer, 1);
    leat_msg_write_u64(writer, trimmed->first_offset);
}

void leat_msg_trimmed_read(struct leat_msg_reader *reader, struct leat_msg_trimmed *out)
{
    uint32_t more = leat_body_open(reader, 1);
    out->first_offset = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

static void accounts_write(struct leat_msg_writer *writer, const struct leat_msg_accounts *accounts)
{
    uint64_t values[LEAT_MSG_ACCOUNTS];
    memcpy(values, accounts, sizeof values);
    leat_msg_write_array(writer, LEAT_MSG_ACCOUNTS);
    for (unsigned i = 0; i < LEAT_MSG_ACCOUNTS; i++)
        leat_msg_write_u64(writer, values[i]);
}

static void accounts_read(struct leat_msg_reader *reader, struct leat_msg_accounts *out)
{
    uint64_t values[LEAT_MSG_ACCOUNTS] = {0};
    uint32_t count = leat_msg_read_array(reader);
    for (uint32_t i = 0; i < count && i < LEAT_MSG_ACCOUNTS; i++)
        values[i] = leat_msg_read_u64(reader);
    if (count > LEAT_MSG_ACCOUNTS) leat_msg_skip_n(reader, count - LEAT_MSG_ACCOUNTS);
    memcpy(out, values, sizeof values);
}

void leat_msg_status_write(struct leat_msg_writer *writer, const struct leat_msg_status *status)
{
    leat_msg_write_array(writer, 13);
    string_write(writer, status->version);
    leat_msg_write_u64(writer, status->uptime_ms);
    leat_msg_write_u64(writer, status->cpu_us);
    leat_msg_write_u64(writer, status->memory_budget);
    leat_msg_write_u64(writer, status->memory_used);
    leat_msg_write_u64(writer, status->disk_free);
    leat_msg_write_u64(writer, status->cores);
    leat_msg_write_u64(writer, status->appended_records);
    leat_msg_write_u64(writer, status->appended_bytes);
    leat_msg_write_u64(writer, status->fetched_records);
    leat_msg_write_u64(writer, status->fetched_bytes);
    leat_msg_write_u64(writer, status->connections);
    accounts_write(writer, &status->accounts);
}

void leat_msg_status_read(struct leat_msg_reader *reader, struct leat_msg_status *out)
{
    uint32_t more = leat_body_open(reader, 12);
    out->version = leat_msg_read_string(reader);
    out->uptime_ms = leat_msg_read_u64(reader);
    out->cpu_us = leat_msg_read_u64(reader);
    out->memory_budget = leat_msg_read_u64(reader);
    out->memory_used = leat_msg_read_u64(reader);
    out->disk_free = leat_msg_read_u64(reader);
    out->cores = leat_msg_read_u64(reader);
    out->appended_records = leat_msg_read_u64(reader);
    out->appended_bytes = leat_msg_read_u64(reader);
    out->fetched_records = leat_msg_read_u64(reader);
    out->fetched_bytes = leat_msg_read_u64(reader);
    out->connections = leat_msg_read_u64(reader);
    out->accounts = (struct leat_msg_accounts){0};
    if (more > 0) {
        accounts_read(reader, &out->accounts);
        more--;
    }
    leat_msg_skip_n(reader, more);
}
