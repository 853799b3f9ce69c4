/* SPDX-License-Identifier: Apache-2.0 */
/* One request at a time, for the commands that ask a server something. */
#include "tools/leat/cli.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/node_log.h"
#include "os/os.h"

enum {
    CALL_TIMEOUT_MS = 30 * 1000,
    SILENT_US = 2 * 1000 * 1000, /* then a terminal is told that there is no answer yet */
    LONG_US = 5 * 1000 * 1000,   /* then whatever standard error is, once in a command */
    ASK_RETRIES = 3,
    PASSING_US = 30 * 1000 * 1000,
    REFUSED_US = 10 * 1000 * 1000, /* a server takes so long to start at most, on a busy machine */
    PASSING_RETRY_MS = 100,
};

struct cli_session {
    struct leat_shared shared;
    bool open;
    struct leat_event done;
    bool finished; /* written before the event, read after it */
    struct leat_request request;
    struct cli_answer *answer;
    struct leat_mail mail, stop;
};
static struct cli_session session;

static void session_on_turn_end(void *owner)
{
    struct cli_session *own = owner;
    if (own->shared.client) leat_client_on_turn_end(own->shared.client);
}

static void call_on_done(struct leat_request *request, leat_err rc, const struct leat_frame *frame,
                         const struct leat_error *error)
{
    struct cli_session *own = request->owner;
    struct cli_answer *answer = own->answer;
    answer->rc = rc;
    if (rc) answer->error = *error;
    leat_node_log_clean(answer->error.text, strlen(answer->error.text));
    if (rc == LEAT_OK && frame->control_bytes) {
        answer->bytes = malloc(frame->control_bytes);
        if (!answer->bytes) abort();
        memcpy(answer->bytes, frame->control, frame->control_bytes);
        answer->count = frame->control_bytes;
        leat_msg_texts_clean(answer->bytes, answer->count); /* it is shown on a terminal */
    }
    own->finished = true;
    leat_event_tell(&own->done);
}

static void call_deliver(void *actor, struct leat_mail *mail)
{
    struct cli_session *own = LEAT_CONTAINER(mail, struct cli_session, mail);
    (void)actor;
    leat_shared_touch(&own->shared);
    leat_err rc = leat_client_send(own->shared.client, &own->request);
    if (rc == LEAT_OK) return;
    struct leat_error error;
    (void)leat_error_set(&error, rc, "%s", leat_err_text(rc));
    call_on_done(&own->request, rc, NULL, &error);
}

static void stop_deliver(void *actor, struct leat_mail *mail)
{
    struct cli_session *own = LEAT_CONTAINER(mail, struct cli_session, stop);
    (void)actor;
    leat_client_destroy(&own->shared.client);
    leat_event_tell(&own->done);
}

/* A question changes nothing: if the asked node has died, another node may answer. */
static bool only_asks(enum leat_kind kind)
{
    return kind == LEAT_KIND_CLUSTER_STATUS || kind == LEAT_KIND_STREAM_DESCRIBE ||
           kind == LEAT_KIND_METADATA || kind == LEAT_KIND_STATUS || kind == LEAT_KIND_SEGMENTS;
}

/* Until there is an answer; a message tells the user about the wait, and its reason. */
static void answer_wait(enum leat_kind kind, uint32_t seen)
{
    static bool told;
    uint64_t from_us = leat_shared_now_us(NULL);
    /* Short enough for a line of a terminal. */
    const char *what = only_asks(kind) ? "" : " (changes wait while coordinators lack a majority)";
    if (leat_event_wait(&session.done, seen, from_us + SILENT_US)) return;
    cli_progress("no answer yet; still waiting%s", what);
    if (!isatty(STDERR_FILENO) && !told &&
        !leat_event_wait(&session.done, seen, from_us + LONG_US)) {
        told = true;
        cli_error("no answer for %d s; still waiting%s", LONG_US / 1000000, what);
    }
    (void)leat_event_wait(&session.done, seen, UINT64_MAX);
    cli_progress_end();
}

static leat_err call_once(enum leat_kind kind, const struct leat_msg_writer *body,
                          struct cli_answer *out_answer)
{
    memset(out_answer, 0, sizeof *out_answer);
    if (!session.open) {
        struct leat_shared_options options = {
            .brokers = cli_brokers,
            .name = "leat",
            .request_timeout_us = (uint64_t)CALL_TIMEOUT_MS * 1000u,
            .fail_fast = true,
        };
        leat_err rc = leat_shared_open(&session.shared, &options, &out_answer->error);
        if (rc) return out_answer->rc = rc;
        leat_shared_start(&session.shared, &session, session_on_turn_end);
        session.open = true;
        session.mail.deliver = call_deliver;
        session.stop.deliver = stop_deliver;
    }
    session.answer = out_answer;
    session.finished = false;
    session.request = (struct leat_request){
        .kind = kind,
        .control = body->bytes,
        .control_bytes = body->used,
        .on_done = call_on_done,
        .owner = &session,
    };
    uint32_t seen = leat_event_look(&session.done);
    leat_shared_post(&session.shared, &session.mail);
    answer_wait(kind, seen);
    return out_answer->rc;
}

/* Of a call that ended with LEAT_E_CLOSED: whether a server was connected, and had got the request. */
static bool was_lost(void)
{
    return session.open && session.request.sent;
}

leat_err cli_call(enum leat_kind kind, const struct leat_msg_writer *body,
                  struct cli_answer *out_answer)
{
    for (unsigned left = ASK_RETRIES;; left--) {
        leat_err rc = call_once(kind, body, out_answer);
        bool lost = rc == LEAT_E_CLOSED && was_lost();
        if (!lost || left == 0 || !only_asks(kind)) return rc;
        cli_answer_fini(out_answer);
    }
}

/* Does a server listen there that takes this account? */
static bool socket_answers(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int length = snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (length < 0 || (size_t)length >= sizeof at.sun_path) return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers = fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0) (void)close(fd);
    return answers;
}

void cli_administer(void)
{
    static char own[5 + 4096 + 16];
    static const char service[] = "unix:/var/lib/leat/leatd.sock"; /* of docs/operations.md */
    const char *brokers = getenv("LEAT_BROKERS");
    char data[4096];
    struct leat_error error;
    if (cli_brokers || (brokers && *brokers)) return;
    if (leat_os_default_data_dir(data, &error) == LEAT_OK) {
        snprintf(own, sizeof own, "unix:%s/leatd.sock", data);
        if (socket_answers(own + 5)) cli_brokers = own;
    }
    if (!cli_brokers && socket_answers(service + 5)) cli_brokers = service;
}

/* The time limit for temporary states: a leader is being elected, a server starts. Counted from the first question
 * on: a question without an answer takes the whole time, and is not asked again. */
struct patience {
    uint64_t until_us, refused_until_us;
};

uint64_t cli_patience_us = UINT64_MAX;

static struct patience patience_begin(void)
{
    uint64_t us = PASSING_US < cli_patience_us ? PASSING_US : cli_patience_us;
    return (struct patience){.until_us = leat_shared_now_us(NULL) + us};
}

static bool is_passing(leat_err rc)
{
    enum leat_err_class class = leat_err_class(rc);
    if (rc == LEAT_E_TIMEOUT) return false; /* the server has waited for it */
    return class == LEAT_CLASS_RETRY || class == LEAT_CLASS_REROUTE;
}

/* Returns false when the time is over; otherwise waits a little and returns true.
 *
 * SUBTLE: "nobody listens there" may be temporary as well. A live node that was declared crashed starts itself anew,
 * while other nodes serve its logs: a command with only this node's address would report that there is no server. But
 * a wrong address looks the same, so the error is shown at once, and the wait is shorter. */
static bool patience_wait(struct patience *patience, const struct cli_answer *answer)
{
    uint64_t now = leat_shared_now_us(NULL);
    if (answer->rc != LEAT_E_CLOSED || was_lost()) {
        patience->refused_until_us = 0;
    } else if (!patience->refused_until_us) {
        uint64_t us = REFUSED_US < cli_patience_us ? REFUSED_US : cli_patience_us;
        patience->refused_until_us = now + us;
        cli_error("%s; trying for %g s more", answer->error.text, (double)us / 1e6);
    }
    bool refused = patience->refused_until_us && now >= patience->refused_until_us;
    if (refused || now >= patience->until_us || cli_interrupted()) return false;
    (void)poll(NULL, 0, PASSING_RETRY_MS);
    return true;
}

static leat_err call_patiently(struct patience *patience, enum leat_kind kind,
                               const struct leat_msg_writer *body, struct cli_answer *out_answer)
{
    for (bool again = false;; again = true) {
        leat_err rc = cli_call(kind, body, out_answer);
        out_answer->again = again;
        if (!is_passing(rc) || !patience_wait(patience, out_answer)) return rc;
        cli_answer_fini(out_answer);
    }
}

leat_err cli_call_patiently(enum leat_kind kind, const struct leat_msg_writer *body,
                            struct cli_answer *out_answer)
{
    struct patience patience = patience_begin();
    return call_patiently(&patience, kind, body, out_answer);
}

leat_err cli_name_call(enum leat_kind kind, const char *name, struct cli_answer *answer)
{
    uint8_t bytes[1024];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 1);
    leat_msg_write_string(&body, name, strnlen(name, sizeof bytes / 2));
    return cli_call(kind, &body, answer);
}

void cli_disconnect(void)
{
    if (!session.open) return;
    uint32_t seen = leat_event_look(&session.done);
    leat_shared_post(&session.shared, &session.stop);
    (void)leat_event_wait(&session.done, seen, UINT64_MAX);
    leat_shared_close(&session.shared);
    session.open = false;
}

void cli_answer_fini(struct cli_answer *answer)
{
    free(answer->bytes);
    answer->bytes = NULL;
}

int cli_refused(const struct cli_answer *answer)
{
    bool no_server = answer->rc == LEAT_E_CLOSED || answer->rc == LEAT_E_TIMEOUT;
    /* A server is there, and has told which port this is (wire/speaker.h). */
    bool other_port = no_server && strstr(answer->error.text, "--listen (7700)") != NULL;
    cli_error("%s", answer->error.text[0] ? answer->error.text : leat_err_text(answer->rc));
    if (answer->rc == LEAT_E_TIMEOUT)
        fputs("      leat cluster status tells whether the coordinators have a majority, and which "
              "nodes are up\n",
              stderr);
    else if (other_port)
        fputs("      -b HOST:PORT or LEAT_BROKERS names that port\n", stderr);
    else if (no_server)
        fputs("      is leatd running there? -b HOST:PORT or LEAT_BROKERS names another server. A "
              "node of a\n"
              "      cluster that has just started answers once more than half of the coordinators "
              "are up (of\n"
              "      a new cluster: all); its standard error says which of them it waits for\n",
              stderr);
    return answer->rc == LEAT_E_CONFIG ? CLI_USAGE : no_server ? CLI_NO_SERVER : CLI_FAILED;
}

/* The requested stream in an answer to METADATA. */
static leat_err stream_read(const struct cli_answer *answer, struct leat_msg_stream *out,
                            char out_why[LEAT_ERROR_TEXT_BYTES])
{
    struct leat_msg_reader reader;
    *out = (struct leat_msg_stream){.code = LEAT_E_INVALID};
    leat_msg_reader_init(&reader, answer->bytes, answer->count);
    (void)leat_msg_read_array(&reader);
    leat_msg_skip_n(&reader, 2);
    (void)leat_msg_read_array(&reader);
    leat_msg_stream_read(&reader, out);
    snprintf(out_why, LEAT_ERROR_TEXT_BYTES, "%.*s", (int)out->text.bytes,
             out->text.bytes > 0 ? out->text.text : "");
    out->name = out->text = (struct leat_msg_string){0}; /* they lie in the answer */
    return reader.failed ? LEAT_E_INVALID : out->code;
}

/* As the server has it: what else there is no advice to make. */
static bool name_can_be_made(const char *name)
{
    const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return name[0] != '\0' && name[strspn(name, allowed)] == '\0' && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static void unknown_stream_tell(const char *name)
{
    if (strncmp(name, "leat.", 5) == 0)
        cli_error("no stream '%s'; what begins with 'leat.' the server makes by itself, when it "
                  "needs it: leat stream list shows your own",
                  name);
    else if (!name_can_be_made(name))
        cli_error("no stream '%s'; none can be named so: letters, digits, '.', '_' and '-' are "
                  "allowed. leat stream list shows those that there are",
                  name);
    else
        cli_error("no stream '%s': see leat stream list, or make it with: leat stream create %s",
                  name, name);
}

/* Of one stream, but its logs. 0, or the exit code after a message. */
static int stream_ask(const char *name, bool may_create, struct leat_msg_stream *out)
{
    uint8_t bytes[512];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 2);
    leat_msg_write_array(&body, 1);
    leat_msg_write_string(&body, name, strlen(name));
    leat_msg_write_bool(&body, may_create);
    struct cli_answer answer;
    if (body.overflow) {
        cli_error("'%.40s...' is too long for a stream's name", name);
        return CLI_FAILED;
    }
    struct patience patience = patience_begin();
    leat_err code;
    char why[LEAT_ERROR_TEXT_BYTES];
    do {
        if (call_patiently(&patience, LEAT_KIND_METADATA, &body, &answer))
            return cli_refused(&answer);
        code = answer.rc = stream_read(&answer, out, why);
        cli_answer_fini(&answer);
    } while (is_passing(code) && patience_wait(&patience, &answer));
    if (code == LEAT_OK) return CLI_OK;
    if (code == LEAT_E_UNKNOWN_STREAM)
        unknown_stream_tell(name);
    else
        cli_error("stream '%.250s': %s%s", name,
                  why[0] && code != LEAT_E_BAD_NAME ? why : leat_err_text(code),
                  code == LEAT_E_BAD_NAME
                      ? "; letters, digits, '.', '_' and '-' are, but not 'leat.' in front"
                      : "");
    return CLI_FAILED;
}

int cli_stream_ensure(const char *name, bool may_create)
{
    struct leat_msg_stream stream;
    return stream_ask(name, may_create, &stream);
}

int cli_stream_settings(const char *name, struct leat_stream_settings *out)
{
    struct leat_msg_stream stream;
    int code = stream_ask(name, false, &stream);
    if (code == CLI_OK) *out = stream.settings;
    return code;
}

int cli_status_get(struct cli_status *out_status)
{
    uint8_t bytes[16];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, 0);
    struct cli_answer answer;
    if (cli_call(LEAT_KIND_STATUS, &body, &answer)) return cli_refused(&answer);
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    struct leat_msg_status status;
    leat_msg_status_read(&reader, &status);
    snprintf(out_status->version, sizeof out_status->version, "%.*s", (int)status.version.bytes,
             status.version.text ? status.version.text : "");
    out_status->uptime_ms = status.uptime_ms;
    out_status->cpu_us = status.cpu_us;
    out_status->memory_budget = status.memory_budget;
    out_status->memory_used = status.memory_used;
    out_status->disk_free = status.disk_free;
    out_status->cores = status.cores;
    out_status->appended_records = status.appended_records;
    out_status->appended_bytes = status.appended_bytes;
    out_status->fetched_records = status.fetched_records;
    out_status->fetched_bytes = status.fetched_bytes;
    out_status->connections = status.connections;
    out_status->accounts = status.accounts;
    bool failed = reader.failed;
    cli_answer_fini(&answer);
    if (!failed) return CLI_OK;
    cli_error("the server's status could not be read");
    return CLI_FAILED;
}

int cli_status_of(const char *address, struct cli_status *out_status)
{
    const char *brokers = cli_brokers;
    cli_disconnect();
    cli_brokers = address;
    int code = cli_status_get(out_status);
    cli_disconnect();
    cli_brokers = brokers;
    return code;
}
