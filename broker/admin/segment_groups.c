/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about a log's groups: a consumer group's home asks the log's core, here or at the node
 * that owns the log. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/core.h"

/* SUBTLE: a log that does not know its beginning yet gives no answer.
 *  1. A log of groups 0 to 2 comes to this node: its last segment first, which has not been read yet. So the log
 *     seems to begin with group 2.
 *  2. A member commits half of group 0. Groups before the first group were dropped, so the home takes groups 0 and 1
 *     for done.
 *  3. The older segments come, and no member reads the rest of these groups. */
void leat_segment_group_look(const struct leat_core *core, struct leat_log_ref ref, uint64_t group,
                             struct leat_segment_group_query *out)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_partition *partition = leat_partition_find(core, ref);
    out->rc = LEAT_OK;
    if (partition == NULL || leat_partition_goes(partition)) {
        out->rc = LEAT_E_UNKNOWN_LOG;
        return;
    }
    struct leat_log_info info;
    uint64_t first = 0;
    leat_log_info(partition->log, &info);
    if (info.state == LEAT_LOG_WAITING)
        out->rc = LEAT_E_LOG_INCOMPLETE;
    else if (!leat_log_front_known(partition->log))
        out->rc = LEAT_E_STARTING;
    if (out->rc != LEAT_OK) return;
    out->first_group = info.first_group;
    if (leat_log_group(partition->log, group, &first, &out->end_offset) != LEAT_OK)
        out->end_offset = group < info.first_group ? 0 : UINT64_MAX;
}

/* ---- the asking side ----
 * The query brings its mail along: it has to end, so nothing on its way on this node may fail. The
 * way to another node may: then the group goes on without the answer, as with a log that waits. */

struct group_ask {
    struct leat_ask ask;
    struct leat_segment_group_query *query;
    uint8_t control[64];
};

static void group_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_segment_group_query *query =
        LEAT_CONTAINER(mail, struct leat_segment_group_query, mail);
    (void)actor;
    query->broker = NULL;
    query->on_done(query);
}

/* query->broker: the core that asks. */
static void group_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_segment_group_query *query =
        LEAT_CONTAINER(mail, struct leat_segment_group_query, mail);
    const struct leat_core *asker = query->broker;
    leat_segment_group_look(core, query->log, query->group, query);
    leat_core_mail(core, asker->index, mail, group_deliver_back);
}

static void group_refuse(struct leat_core *core, struct leat_segment_group_query *query,
                         leat_err rc)
{
    query->rc = rc;
    leat_core_mail(core, core->index, &query->mail, group_deliver_back);
}

static void group_on_answer(struct leat_ask *ask, leat_err rc, const struct leat_frame *answer,
                            const char *why)
{
    struct group_ask *own = ask->owner;
    struct leat_segment_group_query *query = own->query;
    (void)why; /* no client gets the reason: the group tries again with its next commit */
    leat_mem_free(own);
    query->rc = rc;
    if (rc == LEAT_OK) {
        struct leat_msg_segment_group body = {0};
        query->rc = leat_msg_segment_group_decode(answer->control, answer->control_bytes, &body);
        query->first_group = body.first;
        query->end_offset = body.end_offset;
    }
    query->broker = NULL;
    query->on_done(query);
}

static void group_ask_owner(struct leat_core *core, struct leat_segment_group_query *query,
                            uint64_t owner)
{
    struct leat_error error;
    struct group_ask *own = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *own);
    if (own == NULL) {
        group_refuse(core, query, LEAT_E_AGAIN);
        return;
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, own->control, sizeof own->control);
    leat_msg_segment_group_ask_write(
        &writer, &(struct leat_msg_segment_group_ask){query->log, query->group});
    LEAT_ASSERT(!writer.overflow);
    own->query = query;
    own->ask.on_done = group_on_answer;
    own->ask.owner = own;
    leat_err rc = leat_ask_start(core, &own->ask, owner, LEAT_KIND_SEGMENT_GROUP, own->control,
                                 writer.used, &error);
    if (rc == LEAT_OK) return;
    leat_mem_free(own);
    group_refuse(core, query, rc);
}

void leat_segment_group_ask(struct leat_core *core, struct leat_segment_group_query *query)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_stream *stream = leat_stream_find(core, query->log.stream);
    query->broker = core;
    if (stream == NULL || query->log.streamlet >= stream->desc->streamlet_count ||
        query->log.log >= stream->desc->settings.logs)
        group_refuse(core, query, LEAT_E_UNKNOWN_LOG);
    else if (!leat_core_owns(core, stream->desc, query->log.streamlet))
        group_ask_owner(core, query, stream->desc->streamlets[query->log.streamlet].owner);
    else
        leat_core_mail(core, leat_core_of_log(core->node, query->log, stream->desc->settings.logs),
                       &query->mail, group_deliver_home);
}

/* ---- SEGMENT_GROUP [stream, streamlet, log, group], of another node's home ---- */

struct group_call {
    struct leat_call call;
    struct leat_segment_group_query query;
};

static void group_call_done(struct leat_segment_group_query *query)
{
    struct group_call *group = LEAT_CONTAINER(query, struct group_call, query);
    if (query->rc != LEAT_OK) {
        leat_call_refuse(&group->call, query->rc, NULL);
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(group->call.core, &writer);
    leat_msg_segment_group_write(
        &writer, &(struct leat_msg_segment_group){query->first_group, query->end_offset});
    leat_call_answer(&group->call, &writer);
}

void leat_call_segment_group(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct group_call *group = leat_call_create(peer, frame, sizeof *group);
    if (group == NULL) return;
    struct leat_msg_segment_group_ask body = {0};
    struct leat_error error;
    uint32_t home = 0;
    struct leat_segment_group_query *query = &group->query;
    leat_err rc = leat_msg_segment_group_ask_decode(frame->control, frame->control_bytes, &body);
    query->log = body.log;
    query->group = body.group;
    query->on_done = group_call_done;
    query->broker = peer->core;
    if (rc != LEAT_OK)
        rc = leat_error_set(&error, LEAT_E_INVALID,
                            "a segment group is asked for as [stream, streamlet, log, group]");
    else
        rc = leat_partition_place(peer->core, query->log, &home, &error);
    if (rc != LEAT_OK)
        leat_call_refuse(&group->call, rc, error.text);
    else
        leat_core_mail(peer->core, home, &query->mail, group_deliver_home);
}
