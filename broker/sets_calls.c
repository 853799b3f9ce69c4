/* Consumer sets, seen from the broker: requests go to the core of their set's home log, and the
 * sets get what they need of logs and streams. The internal stream of the homes is made when the
 * first request comes. */
#include <string.h>

#include "base/assert.h"
#include "base/diary.h"
#include "base/mem.h"
#include "broker/core.h"

struct set_call {
    struct leat_call call;
    struct leat_list by_peer;
    struct leat_core *home;    /* NULL: not on its way yet */
    struct leat_mail cancel;   /* its peer has gone: to the home and back */
    bool cancelling;           /* that mail is under way. Peer's core */
    bool answered;             /* the request is back. Peer's core */
    struct leat_sets *waiting; /* where it waits; NULL: nowhere. Home's core */
    struct leat_maker maker;
    struct leat_sets_request request;
    uint32_t streams[LEAT_SETS_STREAMS_MAX];
    struct leat_sets_offset *commits;
    struct leat_log_ref *logs;
};

static void set_route(struct set_call *set);
static void set_deliver_home(void *actor, struct leat_mail *mail);
static void set_on_done(struct leat_sets_request *request);
static void set_back(struct set_call *set);
static void set_deliver_back(void *actor, struct leat_mail *mail);
static void set_end(struct set_call *set, leat_err code, const char *text);

/* ---- what sets need of a broker ---- */

static leat_err sets_append(void *ctx, const struct leat_batch *batch, struct leat_append *append)
{
    struct leat_hosted *hosted = ctx;
    struct leat_error error = {LEAT_OK, ""};
    if (hosted->going) return LEAT_E_STARTING;
    leat_err rc = leat_log_append(hosted->log, batch, append, &error);
    if (rc != LEAT_OK && leat_err_class(rc) != LEAT_CLASS_RETRY)
        leat_diary_error("consumer sets of home %u can't be written: %s", hosted->ref.log,
                         error.code != LEAT_OK ? error.text : leat_err_text(rc));
    return rc;
}

static bool sets_stream_size(void *ctx, uint32_t id, uint32_t *out_streamlets, uint32_t *out_logs)
{
    const struct leat_hosted *hosted = ctx;
    const struct leat_stream *stream = leat_stream_find(hosted->core, id);
    if (stream == NULL) return false;
    *out_streamlets = stream->desc->streamlet_count;
    *out_logs = stream->desc->settings.logs;
    return true;
}

/* A question about a log's groups, on its way to the log's core and back. */
struct group_question {
    struct leat_mail mail;
    struct leat_sets_group_query *query;
    struct leat_core *asker;
};

static void group_deliver_back(void *actor, struct leat_mail *mail)
{
    struct group_question *question = LEAT_CONTAINER(mail, struct group_question, mail);
    struct leat_sets_group_query *query = question->query;
    (void)actor;
    leat_mem_free(question);
    query->broker = NULL;
    query->on_done(query);
}

static void group_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct group_question *question = LEAT_CONTAINER(mail, struct group_question, mail);
    struct leat_sets_group_query *query = question->query;
    struct leat_hosted *hosted = leat_hosted_find(core, query->log);
    query->rc = LEAT_OK;
    if (hosted == NULL || hosted->going) {
        query->rc = LEAT_E_UNKNOWN_LOG;
    } else {
        struct leat_log_info info;
        uint64_t first = 0;
        leat_log_info(hosted->log, &info);
        query->first_group = info.first_group;
        if (leat_log_group(hosted->log, query->group, &first, &query->end_offset) != LEAT_OK)
            query->end_offset = query->group < info.first_group ? 0 : UINT64_MAX;
    }
    leat_core_mail(core, question->asker->index, mail, group_deliver_back);
}

static void group_deliver_refusal(void *actor, struct leat_mail *mail)
{
    struct leat_sets_group_query *query = LEAT_CONTAINER(mail, struct group_question, mail)->query;
    query->rc = LEAT_E_UNKNOWN_LOG;
    group_deliver_back(actor, mail);
}

static void sets_group(void *ctx, struct leat_sets_group_query *query)
{
    struct leat_hosted *hosted = ctx;
    struct leat_core *core = hosted->core;
    const struct leat_stream *stream = leat_stream_find(core, query->log.stream);
    struct group_question *question = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *question);
    /* The query must end, and there is no other way to end it later than from here. */
    LEAT_ASSERT(question != NULL);
    question->query = query;
    question->asker = core;
    query->broker = question;
    if (stream == NULL)
        leat_core_mail(core, core->index, &question->mail, group_deliver_refusal);
    else
        leat_core_mail(core, leat_core_of_log(core->node, query->log, stream->desc->settings.logs),
                       &question->mail, group_deliver_home);
}

leat_err leat_sets_attach(struct leat_hosted *hosted, struct leat_log_options *options)
{
    struct leat_core *core = hosted->core;
    struct leat_sets_options sets = {
        .env = core->env,
        .timers = &core->timers,
        .home = hosted->ref.log,
        .broker = {sets_append, sets_stream_size, sets_group},
        .ctx = hosted,
    };
    leat_err rc = leat_sets_create(&sets, &hosted->sets);
    if (rc != LEAT_OK) return rc;
    options->app = leat_sets_app(hosted->sets);
    leat_list_push_back(&core->home_logs, &hosted->home);
    return LEAT_OK;
}

/* ---- requests ---- */

static void read_name(struct leat_msg_reader *reader, char *out, size_t bytes_max)
{
    struct leat_msg_string text = leat_msg_read_string(reader);
    if (text.bytes > bytes_max || memchr(text.text, 0, text.bytes) != NULL) reader->failed = true;
    if (!reader->failed) memcpy(out, text.text, text.bytes);
}

static struct leat_log_ref read_ref(struct leat_msg_reader *reader)
{
    struct leat_log_ref ref;
    ref.stream = leat_msg_read_u32(reader);
    ref.streamlet = leat_msg_read_u32(reader);
    ref.log = leat_msg_read_u32(reader);
    return ref;
}

static leat_err decode_join(struct set_call *set, struct leat_msg_reader *reader,
                            struct leat_error *error)
{
    struct leat_core *core = set->call.core;
    read_name(reader, set->request.member, LEAT_SETS_MEMBER_BYTES_MAX);
    uint64_t mode = leat_msg_read_u64(reader);
    set->request.mode = mode == 0 ? LEAT_SETS_ORDERED : LEAT_SETS_PARALLEL;
    set->request.session_ms = leat_msg_read_u32(reader);
    uint32_t count = leat_msg_read_array(reader);
    if (reader->failed || mode > 1) return LEAT_E_INVALID;
    if (count == 0 || count > LEAT_SETS_STREAMS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "a member names 1 to %d streams, not %u",
                              LEAT_SETS_STREAMS_MAX, count);
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_string name = leat_msg_read_string(reader);
        if (reader->failed) return LEAT_E_INVALID;
        const struct leat_stream *stream = leat_stream_find_name(core, name.text, name.bytes);
        if (stream == NULL || !stream->published)
            return leat_error_set(error, LEAT_E_UNKNOWN_STREAM, "no stream is named \"%.*s\"",
                                  (int)(name.bytes < 120 ? name.bytes : 120), name.text);
        set->streams[i] = stream->desc->id;
    }
    set->request.streams = set->streams;
    set->request.stream_count = count;
    return LEAT_OK;
}

static leat_err decode_commit(struct set_call *set, struct leat_msg_reader *reader)
{
    read_name(reader, set->request.member, LEAT_SETS_MEMBER_BYTES_MAX);
    set->request.generation = leat_msg_read_u32(reader);
    uint32_t count = leat_msg_read_array(reader);
    if (reader->failed || count > LEAT_SETS_COMMIT_ROWS_MAX) return LEAT_E_INVALID;
    set->commits = leat_mem_calloc(LEAT_MEM_BROKER, count + 1, sizeof *set->commits);
    if (set->commits == NULL) return LEAT_E_AGAIN;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t fields = leat_msg_read_array(reader);
        set->commits[i].log = read_ref(reader);
        set->commits[i].group = leat_msg_read_i64(reader);
        set->commits[i].offset = leat_msg_read_u64(reader);
        if (fields < 5) return LEAT_E_INVALID;
        leat_msg_skip_n(reader, fields - 5);
    }
    set->request.commits = set->commits;
    set->request.commit_count = count;
    return reader->failed ? LEAT_E_INVALID : LEAT_OK;
}

static leat_err decode_fetch(struct set_call *set, struct leat_msg_reader *reader)
{
    uint32_t count = leat_msg_read_array(reader);
    if (reader->failed || count > LEAT_SETS_LOGS_MAX) return LEAT_E_INVALID;
    set->logs = leat_mem_calloc(LEAT_MEM_BROKER, count + 1, sizeof *set->logs);
    if (set->logs == NULL) return LEAT_E_AGAIN;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t fields = leat_msg_read_array(reader);
        set->logs[i] = read_ref(reader);
        if (fields < 3) return LEAT_E_INVALID;
        leat_msg_skip_n(reader, fields - 3);
    }
    set->request.logs = set->logs;
    set->request.log_count = count;
    return reader->failed ? LEAT_E_INVALID : LEAT_OK;
}

static leat_err set_decode(struct set_call *set, const struct leat_frame *frame,
                           struct leat_error *error)
{
    struct leat_msg_reader reader;
    struct leat_sets_request *request = &set->request;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    (void)leat_msg_read_array(&reader);
    read_name(&reader, request->set, LEAT_SETS_NAME_BYTES_MAX);
    if (reader.failed) return LEAT_E_INVALID;
    switch ((enum leat_kind)frame->kind) {
    case LEAT_KIND_SET_JOIN:
        request->kind = LEAT_SETS_JOIN;
        return decode_join(set, &reader, error);
    case LEAT_KIND_SET_HEARTBEAT:
        request->kind = LEAT_SETS_HEARTBEAT;
        read_name(&reader, request->member, LEAT_SETS_MEMBER_BYTES_MAX);
        request->generation = leat_msg_read_u32(&reader);
        break;
    case LEAT_KIND_SET_LEAVE:
        request->kind = LEAT_SETS_LEAVE;
        read_name(&reader, request->member, LEAT_SETS_MEMBER_BYTES_MAX);
        break;
    case LEAT_KIND_SET_COMMIT:
        request->kind = LEAT_SETS_COMMIT;
        return decode_commit(set, &reader);
    default:
        LEAT_ASSERT(frame->kind == LEAT_KIND_SET_FETCH);
        request->kind = LEAT_SETS_FETCH;
        return decode_fetch(set, &reader);
    }
    return reader.failed ? LEAT_E_INVALID : LEAT_OK;
}

static void set_on_made(struct leat_maker *maker)
{
    struct set_call *set = maker->owner;
    if (maker->rc != LEAT_OK && maker->rc != LEAT_E_STREAM_EXISTS) {
        set_end(set, maker->rc, maker->error.text);
        return;
    }
    set_route(set);
}

static void set_on_published(struct leat_stream_wait *wait)
{
    set_route(wait->owner);
}

void leat_call_set(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct set_call *set = leat_call_create(peer, frame, sizeof *set);
    if (set == NULL) return;
    leat_list_init(&set->by_peer);
    leat_list_push_back(&peer->set_calls, &set->by_peer);
    struct leat_core *core = peer->core;
    struct leat_error error = {LEAT_OK, ""};
    leat_err rc = set_decode(set, frame, &error);
    if (rc != LEAT_OK) {
        set_end(set, rc,
                error.code != LEAT_OK ? error.text : "malformed request to a consumer set");
        return;
    }
    set->maker.wait.on_ready = set_on_published;
    set->maker.wait.owner = set;
    const char *name = LEAT_SETS_STREAM_NAME;
    if (leat_stream_find_name(core, name, strlen(name)) == NULL) {
        struct leat_stream_settings settings = {.streamlets = 1, .logs = LEAT_SETS_HOMES};
        set->maker.on_done = set_on_made;
        set->maker.owner = set;
        leat_maker_start(core, &set->maker, name, strlen(name), &settings);
        return;
    }
    set_route(set);
}

static void set_route(struct set_call *set)
{
    struct leat_core *core = set->call.core;
    if (set->call.peer->conn == NULL) {
        set_end(set, LEAT_E_CANCELLED, NULL);
        return;
    }
    const char *name = LEAT_SETS_STREAM_NAME;
    struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
    if (stream == NULL) {
        /* Made by another request just now, and still on its way to this core. */
        set_end(set, LEAT_E_AGAIN, "the home of consumer sets is being made, try again");
        return;
    }
    if (!stream->published) {
        leat_list_push_back(&stream->waiters, &set->maker.wait.link);
        return;
    }
    struct leat_log_ref ref = {stream->desc->id, 0,
                               leat_sets_home(set->request.set, strlen(set->request.set))};
    uint32_t home = leat_core_of_log(core->node, ref, stream->desc->settings.logs);
    set->home = &core->node->cores[home];
    set->request.on_done = set_on_done;
    set->request.owner = set;
    leat_core_mail(core, home, &set->call.mail, set_deliver_home);
}

static void set_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct set_call *set = LEAT_CONTAINER(mail, struct set_call, call.mail);
    const char *name = LEAT_SETS_STREAM_NAME;
    const struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
    struct leat_hosted *hosted = NULL;
    if (stream != NULL) {
        struct leat_log_ref ref = {stream->desc->id, 0,
                                   leat_sets_home(set->request.set, strlen(set->request.set))};
        hosted = leat_hosted_find(core, ref);
    }
    if (hosted == NULL || hosted->going || hosted->sets == NULL) {
        set->request.rc = leat_error_set(&set->request.error, LEAT_E_STARTING,
                                         "the set's home log is not served right now");
        set_back(set);
        return;
    }
    if (leat_sets_do(hosted->sets, &set->request))
        set_back(set);
    else
        set->waiting = hosted->sets;
}

static void set_on_done(struct leat_sets_request *request)
{
    struct set_call *set = request->owner;
    set->waiting = NULL;
    set_back(set);
}

/* ---- the peer has gone ----
 *
 * A join is held until its set has settled, up to a whole session: as long it would hold one of the
 * home's places, and its member would get a share that nobody reads. */

static void set_deliver_cancelled(void *actor, struct leat_mail *mail)
{
    struct set_call *set = LEAT_CONTAINER(mail, struct set_call, cancel);
    (void)actor;
    set->cancelling = false;
    if (set->answered) set_end(set, LEAT_E_CANCELLED, NULL);
}

/* Mail of one core to another keeps its order, so the request has been here before. It has gone
 * back, or waits, and then goes back from within. */
static void set_deliver_cancel(void *actor, struct leat_mail *mail)
{
    struct set_call *set = LEAT_CONTAINER(mail, struct set_call, cancel);
    if (set->waiting != NULL) leat_sets_cancel(set->waiting, &set->request);
    leat_core_mail(actor, set->call.core->index, mail, set_deliver_cancelled);
}

void leat_sets_peer_closed(struct leat_peer *peer)
{
    LEAT_LIST_EACH(&peer->set_calls, link)
    {
        struct set_call *set = LEAT_CONTAINER(link, struct set_call, by_peer);
        if (set->home == NULL || set->cancelling) continue;
        set->cancelling = true;
        leat_core_mail(peer->core, set->home->index, &set->cancel, set_deliver_cancel);
    }
}

static void set_back(struct set_call *set)
{
    leat_core_mail(set->home, set->call.core->index, &set->call.mail, set_deliver_back);
}

static void set_release(struct set_call *set)
{
    leat_list_remove(&set->by_peer);
    leat_mem_free(set->request.assigned);
    leat_mem_free(set->request.offsets);
    leat_mem_free(set->commits);
    leat_mem_free(set->logs);
}

static void write_ref(struct leat_msg_writer *writer, struct leat_log_ref ref)
{
    leat_msg_write_u64(writer, ref.stream);
    leat_msg_write_u64(writer, ref.streamlet);
    leat_msg_write_u64(writer, ref.log);
}

static void set_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct set_call *set = LEAT_CONTAINER(mail, struct set_call, call.mail);
    struct leat_sets_request *request = &set->request;
    struct leat_msg_writer writer;
    set->answered = true;
    if (set->cancelling) return; /* it is freed when that mail is back */
    if (request->rc != LEAT_OK) {
        set_end(set, request->rc, request->error.code != LEAT_OK ? request->error.text : NULL);
        return;
    }
    leat_call_writer(core, &writer);
    if (request->kind == LEAT_SETS_JOIN) {
        leat_msg_write_array(&writer, 3);
        leat_msg_write_string(&writer, request->member, strlen(request->member));
        leat_msg_write_u64(&writer, request->generation);
        leat_msg_write_array(&writer, (uint32_t)request->assigned_count);
        for (size_t i = 0; i < request->assigned_count; i++) {
            leat_msg_write_array(&writer, 6);
            write_ref(&writer, request->assigned[i].log);
            leat_msg_write_u64(&writer, request->assigned[i].first_group);
            leat_msg_write_u64(&writer, 0);
            leat_msg_write_u64(&writer, request->assigned[i].group_step);
        }
    } else if (request->kind == LEAT_SETS_FETCH) {
        leat_msg_write_array(&writer, 2);
        leat_msg_write_u64(&writer, request->generation);
        leat_msg_write_array(&writer, (uint32_t)request->offset_count);
        for (size_t i = 0; i < request->offset_count; i++) {
            leat_msg_write_array(&writer, 5);
            write_ref(&writer, request->offsets[i].log);
            leat_msg_write_i64(&writer, request->offsets[i].group);
            leat_msg_write_u64(&writer, request->offsets[i].offset);
        }
    } else {
        leat_msg_write_array(&writer, 0);
    }
    set_release(set);
    leat_call_answer(&set->call, &writer);
}

static void set_end(struct set_call *set, leat_err code, const char *text)
{
    set_release(set);
    leat_call_refuse(&set->call, code, text);
}
