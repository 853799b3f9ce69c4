/* Locate: where is the earliest, the latest record, or the one of a time or an offset? Logs are
 * asked one after the other, each on its own core. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/core.h"

struct locate_call {
    struct leat_call call;
    struct leat_core *home;
    uint32_t count, at;
    struct leat_msg_locate *asked;
    struct leat_msg_located *found;
    struct leat_buffer_wait buffer_wait;
    void *buffer;
    struct leat_locate_op op;
};

static void locate_next(struct locate_call *locate);
static void locate_here(struct locate_call *locate);
static void locate_done(struct locate_call *locate);
static void locate_end(struct locate_call *locate, leat_err code, const char *text);

static void locate_on_buffer(struct leat_buffer_wait *wait, void *buffer)
{
    struct locate_call *locate = wait->owner;
    locate->buffer = buffer;
    locate_next(locate);
}

void leat_call_locate(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct locate_call *locate = leat_call_create(peer, frame, sizeof *locate);
    if (locate == NULL) return;
    struct leat_core *core = peer->core;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    /* The body is an array whose one element is the list of logs. */
    (void)leat_msg_read_array(&reader);
    uint32_t count = leat_msg_read_array(&reader);
    if (reader.failed || count == 0 || count > LEAT_LOCATE_LOGS_MAX) {
        struct leat_error error;
        leat_error_set(&error, LEAT_E_INVALID,
                       "a locate names 1 to %d logs as [[stream, "
                       "streamlet, log, what, value]...]",
                       LEAT_LOCATE_LOGS_MAX);
        locate_end(locate, LEAT_E_INVALID, error.text);
        return;
    }
    locate->asked = leat_mem_calloc(LEAT_MEM_BROKER, count, sizeof *locate->asked);
    locate->found = leat_mem_calloc(LEAT_MEM_BROKER, count, sizeof *locate->found);
    if (locate->asked == NULL || locate->found == NULL) {
        locate_end(locate, LEAT_E_AGAIN, NULL);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        leat_msg_locate_read(&reader, &locate->asked[i]);
    if (reader.failed) {
        locate_end(locate, LEAT_E_INVALID, "malformed list of logs in a locate");
        return;
    }
    locate->count = count;
    leat_list_init(&locate->buffer_wait.link);
    locate->buffer_wait.on_buffer = locate_on_buffer;
    locate->buffer_wait.owner = locate;
    locate->buffer = leat_core_buffer_try(core);
    if (locate->buffer == NULL)
        leat_core_buffer_wait(core, &locate->buffer_wait);
    else
        locate_next(locate);
}

static void locate_deliver_home(void *actor, struct leat_mail *mail)
{
    struct locate_call *locate = LEAT_CONTAINER(mail, struct locate_call, call.mail);
    LEAT_ASSERT(actor == locate->home);
    locate_here(locate);
}

/* The sentence is made when it is written, from what holds then: refusals are kept as codes. */
static void locate_write_row(struct leat_msg_writer *writer, struct leat_core *core,
                             struct leat_log_ref log, struct leat_msg_located *row)
{
    struct leat_error error = {LEAT_OK, ""};
    uint32_t home;
    if (row->code != LEAT_OK && leat_hosted_place(core, log, &home, &error) == LEAT_OK &&
        (row->code == LEAT_E_STARTING || row->code == LEAT_E_UNKNOWN_STREAM))
        leat_error_set(&error, row->code, "%s", leat_hosted_absent_words(row->code));
    if (error.code == row->code)
        row->text = (struct leat_msg_string){error.text, (uint32_t)strlen(error.text)};
    leat_msg_located_write(writer, row);
}

static void locate_next(struct locate_call *locate)
{
    struct leat_core *core = locate->call.core;
    while (locate->at < locate->count) {
        const struct leat_msg_locate *asked = &locate->asked[locate->at];
        uint32_t home = 0;
        /* The epoch is not asked for: where a log's ends are is true under any. */
        leat_err rc = leat_hosted_place(core, asked->log, &home, NULL);
        if (rc != LEAT_OK) {
            locate->found[locate->at++].code = rc;
            continue;
        }
        locate->home = &core->node->cores[home];
        leat_core_mail(core, home, &locate->call.mail, locate_deliver_home);
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(core, &writer);
    leat_msg_write_array(&writer, locate->count);
    for (uint32_t i = 0; i < locate->count; i++)
        locate_write_row(&writer, core, locate->asked[i].log, &locate->found[i]);
    LEAT_ASSERT(!writer.overflow);
    leat_core_buffer_give(core, locate->buffer);
    leat_mem_free(locate->asked);
    leat_mem_free(locate->found);
    leat_call_answer(&locate->call, &writer);
}

static void locate_on_done(struct leat_locate_op *op)
{
    locate_done(op->owner);
}

static void locate_here(struct locate_call *locate)
{
    const struct leat_msg_locate *asked = &locate->asked[locate->at];
    struct leat_hosted *hosted = leat_hosted_find(locate->home, asked->log);
    struct leat_locate_op *op = &locate->op;
    if (hosted == NULL || hosted->going) {
        op->rc = leat_hosted_absent(locate->home, asked->log);
        locate_done(locate);
        return;
    }
    memset(op, 0, sizeof *op);
    op->what = asked->what;
    op->value = asked->value;
    op->on_done = locate_on_done;
    op->owner = locate;
    op->read.disk_buffer = locate->buffer;
    op->read.disk_buffer_bytes = LEAT_DISK_BUFFER_BYTES;
    if (leat_log_locate(hosted->log, op) != LEAT_E_AGAIN) locate_done(locate);
}

static void locate_deliver_back(void *actor, struct leat_mail *mail)
{
    struct locate_call *locate = LEAT_CONTAINER(mail, struct locate_call, call.mail);
    (void)actor;
    const struct leat_locate_op *op = &locate->op;
    struct leat_msg_located *found = &locate->found[locate->at++];
    found->code = op->rc;
    found->offset = op->offset.v;
    found->timestamp_ms = op->timestamp_ms;
    found->position = op->position;
    locate_next(locate);
}

static void locate_done(struct locate_call *locate)
{
    leat_core_mail(locate->home, locate->call.core->index, &locate->call.mail, locate_deliver_back);
}

static void locate_end(struct locate_call *locate, leat_err code, const char *text)
{
    leat_mem_free(locate->asked);
    leat_mem_free(locate->found);
    leat_call_refuse(&locate->call, code, text);
}
