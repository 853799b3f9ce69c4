/* SPDX-License-Identifier: Apache-2.0 */
/* Locate: where is the earliest or the latest record of a log, or the record of a time or an offset? Logs are asked
 * one after the other, each on its own core. */
#include "broker/data/serve.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "broker/data/confirm.h"
#include "broker/data/core_data.h"
#include "broker/data/lend.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/net/call.h"
#include "broker/net/core.h"

/* ---- logs, one after the other ---- */

static void locator_next(struct leat_locator *locator);
static void locator_on_buffer(struct leat_buffer_wait *wait, void *buffer);

static void locator_deliver_start(void *actor, struct leat_mail *mail)
{
    (void)actor;
    locator_next(LEAT_CONTAINER(mail, struct leat_locator, mail));
}

static void locator_begin(struct leat_locator *locator)
{
    leat_core_mail(locator->core, locator->core->index, &locator->mail, locator_deliver_start);
}

void leat_locator_start(struct leat_locator *locator)
{
    LEAT_ASSERT_OWNER(locator->core);
    struct leat_list *others = &locator->peer->locators;
    bool first = leat_list_empty(others) || locator->peer == &locator->core->link_peer;
    locator->at = 0;
    locator->buffer = NULL;
    leat_list_init(&locator->mates);
    locator->address = locator->peer->address_number;
    locator->buffer_wait.on_buffer = locator_on_buffer;
    locator->buffer_wait.owner = locator;
    leat_list_push_back(others, &locator->link);
    if (first) locator_begin(locator);
}

static void locator_buffer_give(struct leat_locator *locator)
{
    if (locator->buffer != NULL) leat_buffer_give(locator->core, locator->buffer);
    locator->buffer = NULL;
}

/* SUBTLE: the locator may have a buffer that it never used. (1) The locator waits for a buffer. (2) Its connection
 * goes. (3) The locator gets the buffer, and no longer looks for anything. Each buffer of the core's few that is not
 * given back here would be gone for good. */
static void locator_end(struct leat_locator *locator)
{
    struct leat_peer *peer = locator->peer;
    locator_buffer_give(locator);
    leat_list_remove(&locator->link);
    if (peer != &locator->core->link_peer && !leat_list_empty(&peer->locators))
        locator_begin(LEAT_CONTAINER(peer->locators.next, struct leat_locator, link));
    locator->on_done(locator);
}

static void locator_on_buffer(struct leat_buffer_wait *wait, void *buffer)
{
    struct leat_locator *locator = wait->owner;
    locator->buffer = buffer;
    /* By mail even to its own core: the caller is in the middle of a step */
    locator_begin(locator);
}

/* The bytes have left memory: the same log again, with a buffer. */
static void locator_again_with_buffer(struct leat_locator *locator)
{
    struct leat_core *core = locator->core;
    locator->buffer = leat_buffer_try(core);
    if (locator->buffer != NULL)
        locator_next(locator);
    else
        leat_buffer_wait(core, locator->peer, &locator->buffer_wait);
}

static void locator_take(struct leat_locator *locator, leat_err rc)
{
    const struct leat_locate_op *op = &locator->op;
    struct leat_msg_located *found = &locator->found[locator->at];
    if (locator->epochs != NULL) locator->epochs[locator->at] = op->epoch;
    if (locator->ranges != NULL)
        locator->ranges[locator->at] =
            (struct leat_locate_range){op->first_position, op->end_position};
    locator->at++;
    found->code = rc;
    found->offset = op->offset.v;
    if (op->what == LEAT_LOCATE_LATEST && LEAT_BUG(ANOTHERS_END))
        found->offset = locator->found[0].offset;
    found->timestamp_ms = op->timestamp_ms;
    found->position = op->position;
    locator_next(locator);
}

static void locator_on_confirmed(struct leat_confirm *confirm, leat_err rc)
{
    struct leat_locator *locator = confirm->owner;
    rc = leat_confirm_owner(locator->core, locator->asked[locator->at].log, locator->epoch, rc);
    locator_take(locator, rc != LEAT_OK ? rc : locator->op.rc);
}

static void locator_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_locator *locator = LEAT_CONTAINER(mail, struct leat_locator, mail);
    (void)actor;
    if (locator->op.rc == LEAT_E_NO_MEMORY && locator->buffer == NULL) {
        locator_again_with_buffer(locator);
        return;
    }
    locator_buffer_give(locator);
    if (locator->op.rc == LEAT_E_OFFSET_OUT_OF_RANGE && leat_confirm_needed(locator->core) &&
        !LEAT_BUG(END_UNCONFIRMED)) {
        locator->confirm.on_done = locator_on_confirmed;
        locator->confirm.owner = locator;
        leat_confirm_ask(locator->core, &locator->confirm);
        return;
    }
    locator_take(locator, locator->op.rc);
}

static void locator_back(struct leat_locator *locator)
{
    leat_core_mail(locator->home, locator->core->index, &locator->mail, locator_deliver_back);
}

/* On the log's core. */
static void locator_hope(const struct leat_partition *partition, struct leat_locate_op *op)
{
    if (op->rc == LEAT_E_DAMAGED && op->read.rc == LEAT_E_DAMAGED && !LEAT_BUG(LOCATE_AWAY_IS_LOST))
        op->rc = leat_partition_hope(partition, &op->read);
}

static void locate_deliver_turn(void *actor, struct leat_mail *mail);

static void mail_myself(struct leat_core *home)
{
    if (home->data->locate_mailed) return;
    home->data->locate_mailed = true;
    leat_core_mail(home, home->index, &home->data->locate_mail, locate_deliver_turn);
}

/* The log has answered what it can answer at once. */
static void locator_looked(struct leat_locator *locator)
{
    if (!locator->op.seeks) {
        locator_back(locator);
        return;
    }
    leat_list_push_back(&locator->home->data->locating, &locator->line);
    mail_myself(locator->home);
}

static void locator_on_located(struct leat_locate_op *op)
{
    struct leat_locator *locator = op->owner;
    const struct leat_partition *partition =
        leat_partition_find(locator->home, locator->asked[locator->at].log);
    if (partition != NULL && partition->log == op->read.log) locator_hope(partition, op);
    locator_looked(locator);
}

/* On the log's core. */
static void locator_look(struct leat_locator *locator)
{
    const struct leat_msg_locate *asked = &locator->asked[locator->at];
    struct leat_partition *partition = leat_partition_find(locator->home, asked->log);
    struct leat_locate_op *op = &locator->op;
    if (partition == NULL || leat_partition_goes(partition)) {
        op->rc = leat_partition_absent(locator->home, asked->log);
        locator_back(locator);
        return;
    }
    memset(op, 0, sizeof *op);
    op->what = asked->what;
    op->value = asked->value;
    op->from = asked->position;
    op->on_done = locator_on_located;
    op->owner = locator;
    op->read.disk_buffer = locator->buffer;
    op->read.disk_buffer_bytes = locator->buffer != NULL ? LEAT_DISK_BUFFER_BYTES : 0;
    if (leat_log_locate(partition->log, op) == LEAT_E_AGAIN) {
        if (leat_log_reads_wait(partition->log)) leat_partition_watch(partition); /* not for ever */
        return;
    }
    locator_hope(partition, op);
    locator_looked(locator);
}

/* The first locator of an address waits in the core's line; the later locators of this address wait in the first
 * one's list. */
static void line_join(struct leat_core *home, struct leat_locator *locator)
{
    LEAT_LIST_EACH(&home->data->locates, link)
    {
        struct leat_locator *first = LEAT_CONTAINER(link, struct leat_locator, line);
        if (first->address != locator->address) continue;
        leat_list_push_back(&first->mates, &locator->line);
        return;
    }
    leat_list_push_back(&home->data->locates, &locator->line);
}

/* The next locator of the same address goes to the end of the core's line. */
static struct leat_locator *line_next(struct leat_core *home)
{
    struct leat_list *link = leat_list_pop_front(&home->data->locates);
    LEAT_ASSERT(link != NULL);
    struct leat_locator *first = LEAT_CONTAINER(link, struct leat_locator, line);
    struct leat_list *mate = leat_list_pop_front(&first->mates);
    if (mate == NULL) return first;
    struct leat_locator *heir = LEAT_CONTAINER(mate, struct leat_locator, line);
    leat_list_insert_before(&first->mates, &heir->mates);
    leat_list_remove(&first->mates);
    leat_list_push_back(&home->data->locates, &heir->line);
    return first;
}

static void locating_step(struct leat_core *home)
{
    struct leat_list *link = leat_list_pop_front(&home->data->locating);
    struct leat_locator *locator = LEAT_CONTAINER(link, struct leat_locator, line);
    leat_err rc = leat_locate_step(&locator->op);
    while (rc == LEAT_E_AGAIN && LEAT_BUG(LOOK_UP_WHOLE))
        rc = leat_locate_step(&locator->op);
    if (rc == LEAT_E_AGAIN)
        leat_list_push_front(&home->data->locating, link);
    else
        locator_back(locator);
}

/* A piece of a batch, or a log. A batch that was begun is uncompressed to its end before the next one, or the next log,
 * is looked at: a core has one unpacker for this, however many reads have ended at once. */
static void locate_deliver_turn(void *actor, struct leat_mail *mail)
{
    struct leat_core *home = actor;
    LEAT_ASSERT(mail == &home->data->locate_mail);
    home->data->locate_mailed = false;
    if (!leat_list_empty(&home->data->locating))
        locating_step(home);
    else
        locator_look(line_next(home));
    if (!leat_list_empty(&home->data->locating) || !leat_list_empty(&home->data->locates))
        mail_myself(home);
}

/* SUBTLE: why one locator at a time, and why addresses take turns. (1) To find a time in a compressed batch takes
 * milliseconds. (2) An address has thousands of connections, and each asks for a time. (3) In the order of arrival, a
 * consumer that starts would wait for all of them, seconds. Why in pieces: the core looks at its sockets between two
 * pieces, and appends wait for one piece at most. */
static void locator_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_locator *locator = LEAT_CONTAINER(mail, struct leat_locator, mail);
    struct leat_core *home = actor;
    LEAT_ASSERT(home == locator->home);
    line_join(home, locator);
    mail_myself(home);
}

static uint32_t epoch_of(const struct leat_core *core, struct leat_log_ref ref)
{
    return leat_stream_find(core, ref.stream)->desc->streamlets[ref.streamlet].epoch.v;
}

static void locator_next(struct leat_locator *locator)
{
    struct leat_core *core = locator->core;
    bool abandoned = locator->peer->conn == NULL && locator->peer != &core->link_peer;
    while (locator->at < locator->count && !abandoned) {
        uint32_t home = 0;
        /* The epoch is not asked for: where a log's ends are is true under any. */
        leat_err rc = leat_partition_place(core, locator->asked[locator->at].log, &home, NULL);
        if (rc != LEAT_OK) {
            locator->found[locator->at++].code = rc;
            continue;
        }
        locator->home = &core->node->cores[home];
        locator->epoch = epoch_of(core, locator->asked[locator->at].log);
        leat_core_mail(core, home, &locator->mail, locator_deliver_home);
        return;
    }
    locator_end(locator);
}

/* ---- LOCATE [[[stream, streamlet, log, what, value]...]] ---- */

struct locate_call {
    struct leat_call call;
    struct leat_locator locator;
};

/* Why there is no such place, and which there are. */
static void position_refuse(struct leat_position place, const struct leat_locate_range *range,
                            struct leat_error *out_error)
{
    const struct leat_position first = range->first, end = range->end;
    bool front = place.segment == first.segment; /* of which some may have been given up */
    char why[80];
    snprintf(why, sizeof why, "no batch begins there%s", front ? ", or none any more" : "");
    if (place.group != place.segment / LEAT_SEGMENTS_PER_GROUP)
        snprintf(why, sizeof why, "segment %llu is of segment group %llu",
                 (unsigned long long)place.segment,
                 (unsigned long long)place.segment / LEAT_SEGMENTS_PER_GROUP);
    else if (place.segment < first.segment)
        snprintf(why, sizeof why, "it was given up, or retention dropped it");
    else if (place.segment > end.segment ||
             (place.segment == end.segment && place.position > end.position))
        snprintf(why, sizeof why, "that is behind the end");
    leat_error_set(out_error, LEAT_E_OFFSET_OUT_OF_RANGE,
                   "nothing at %llu/%llu/%u: %s; the log goes from %llu/%llu/%u to %llu/%llu/%u",
                   (unsigned long long)place.group, (unsigned long long)place.segment,
                   place.position, why, (unsigned long long)first.group,
                   (unsigned long long)first.segment, first.position, (unsigned long long)end.group,
                   (unsigned long long)end.segment, end.position);
}

/* The sentence is made when it is written, from what holds then: refusals are kept as codes. */
static void locate_write_row(struct leat_msg_writer *writer, struct leat_core *core,
                             const struct leat_msg_locate *asked,
                             const struct leat_locate_range *range, struct leat_msg_located *row)
{
    struct leat_error error = {LEAT_OK, ""};
    const struct leat_log_ref log = asked->log;
    uint32_t home;
    if (row->code == LEAT_E_OFFSET_OUT_OF_RANGE && asked->what == LEAT_LOCATE_POSITION)
        position_refuse(asked->position, range, &error);
    else if (row->code == LEAT_E_OFFSET_OUT_OF_RANGE)
        leat_error_set(&error, row->code,
                       "stream %u streamlet %u log %u has no offset %lld: the nearest is %llu",
                       log.stream, log.streamlet, log.log, (long long)asked->value,
                       (unsigned long long)row->offset);
    else if (row->code != LEAT_OK && leat_partition_place(core, log, &home, &error) == LEAT_OK &&
             (row->code == LEAT_E_STARTING || row->code == LEAT_E_UNKNOWN_STREAM))
        leat_error_set(&error, row->code, "%s", leat_partition_absent_words(row->code));
    if (error.code == row->code)
        row->text = (struct leat_msg_string){error.text, (uint32_t)strlen(error.text)};
    leat_msg_located_write(writer, row);
}

static void locate_free(struct leat_locator *locator)
{
    leat_mem_free(locator->asked);
    leat_mem_free(locator->found);
    leat_mem_free(locator->ranges);
}

static void locate_end(struct locate_call *locate, leat_err code, const char *text)
{
    locate_free(&locate->locator);
    leat_call_refuse(&locate->call, code, text);
}

static void locate_on_done(struct leat_locator *locator)
{
    struct locate_call *locate = locator->owner;
    struct leat_core *core = locator->core;
    struct leat_msg_writer writer;
    if (LEAT_BUG(LOOK_UP_AWAITS_NODES) && !leat_all_nodes_up(core)) return;
    leat_call_writer(core, &writer);
    leat_msg_located_all_write(&writer, locator->count);
    for (uint32_t i = 0; i < locator->count; i++)
        locate_write_row(&writer, core, &locator->asked[i], &locator->ranges[i],
                         &locator->found[i]);
    LEAT_ASSERT(!writer.overflow);
    locate_free(locator);
    leat_call_answer(&locate->call, &writer);
}

void leat_call_locate(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct locate_call *locate = leat_call_create(peer, frame, sizeof *locate);
    if (locate == NULL) return;
    struct leat_core *core = peer->core;
    struct leat_locator *locator = &locate->locator;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    struct leat_msg_locate_all body;
    uint32_t left = leat_msg_locate_all_read(&reader, &body), count = body.count;
    if (reader.failed || count == 0 || count > LEAT_LOCATE_LOGS_MAX) {
        struct leat_error error;
        leat_error_set(&error, LEAT_E_INVALID,
                       "a locate names 1 to %d logs as [[stream, "
                       "streamlet, log, what, value]...]",
                       LEAT_LOCATE_LOGS_MAX);
        locate_end(locate, LEAT_E_INVALID, error.text);
        return;
    }
    locator->asked = leat_call_memory(&locate->call, count, sizeof *locator->asked);
    locator->found = leat_call_memory(&locate->call, count, sizeof *locator->found);
    locator->ranges = leat_call_memory(&locate->call, count, sizeof *locator->ranges);
    if (locator->asked == NULL || locator->found == NULL || locator->ranges == NULL) {
        locate_end(locate, LEAT_E_AGAIN, NULL);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        leat_msg_locate_read(&reader, &locator->asked[i]);
    if (!leat_msg_read_end(&reader, left)) {
        locate_end(locate, LEAT_E_INVALID, "malformed list of logs in a locate");
        return;
    }
    locator->core = core;
    locator->peer = peer;
    locator->count = count;
    locator->on_done = locate_on_done;
    locator->owner = locate;
    leat_locator_start(locator);
}
