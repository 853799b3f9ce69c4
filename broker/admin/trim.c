/* SPDX-License-Identifier: Apache-2.0 */
/* STREAM_TRIM: records before an offset are given up. */
#include "broker/front_logs.h"

#include <string.h>

#include "base/assert.h"
#include "broker/admin/calls.h"
#include "broker/admin/streams.h"
#include "broker/data/call_find.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/data/seek.h"
#include "broker/net/call.h"

static void trimmer_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_trimmer *trimmer = LEAT_CONTAINER(mail, struct leat_trimmer, mail);
    (void)actor;
    trimmer->on_done(trimmer);
}

static void trimmer_back(struct leat_trimmer *trimmer, struct leat_core *home)
{
    leat_core_mail(home, trimmer->core->index, &trimmer->mail, trimmer_deliver_back);
}

static void trimmer_on_trimmed(struct leat_log_trim *trim, leat_err rc)
{
    struct leat_trimmer *trimmer = trim->owner;
    trimmer->first_offset = trim->first_offset;
    trimmer->rc = rc;
    leat_error_set(&trimmer->error, rc, "%s", rc == LEAT_OK ? "" : leat_err_text(rc));
    trimmer_back(trimmer, &trimmer->core->node->cores[trimmer->home]);
}

static void trimmer_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_trimmer *trimmer = LEAT_CONTAINER(mail, struct leat_trimmer, mail);
    struct leat_core *home = actor;
    struct leat_partition *partition = leat_partition_find(home, trimmer->log);
    if (partition == NULL || leat_partition_goes(partition)) {
        trimmer->rc = leat_partition_absent(home, trimmer->log);
        leat_error_set(&trimmer->error, trimmer->rc, "%s",
                       leat_partition_absent_words(trimmer->rc));
        trimmer_back(trimmer, home);
        return;
    }
    trimmer->trim = (struct leat_log_trim){
        .before = trimmer->before, .on_done = trimmer_on_trimmed, .owner = trimmer};
    trimmer->rc = leat_log_trim_before(partition->log, &trimmer->trim, &trimmer->error);
    if (trimmer->rc != LEAT_OK) trimmer_back(trimmer, home);
}

void leat_trimmer_start(struct leat_trimmer *trimmer)
{
    leat_core_mail(trimmer->core, trimmer->home, &trimmer->mail, trimmer_deliver_home);
}

/* ---- STREAM_TRIM [stream name, streamlet, log, before] ---- */

struct trim_call {
    struct leat_call call;
    struct leat_call_kept kept;
    struct leat_trimmer trimmer;
};

static void trim_on_done(struct leat_trimmer *trimmer)
{
    struct trim_call *trim = trimmer->owner;
    if (trimmer->rc != LEAT_OK) {
        leat_call_refuse(&trim->call, trimmer->rc, trimmer->error.text);
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(trim->call.core, &writer);
    leat_msg_trimmed_write(&writer, &(struct leat_msg_trimmed){trimmer->first_offset});
    leat_call_answer(&trim->call, &writer);
}

static void trim_begin(struct trim_call *trim)
{
    struct leat_trimmer *trimmer = &trim->trimmer;
    struct leat_msg_trim body;
    if (leat_msg_trim_decode(trim->kept.control, trim->kept.control_bytes, &body) != LEAT_OK) {
        leat_call_refuse(&trim->call, LEAT_E_INVALID,
                         "the control body of stream trim is not [stream, streamlet, log, before]");
        return;
    }
    struct leat_error error = {LEAT_OK, ""};
    if (leat_stream_name_allowed(body.stream, &error) != LEAT_OK) { /* the server's own are not */
        leat_call_refuse(&trim->call, error.code, error.text);
        return;
    }
    if (!leat_call_log_find(&trim->call, &trim->kept, body.stream, body.streamlet, body.log,
                            &trimmer->log, &trimmer->home))
        return;
    trimmer->core = trim->call.core;
    trimmer->before = body.before;
    trimmer->on_done = trim_on_done;
    trimmer->owner = trim;
    leat_trimmer_start(trimmer);
}

static void trim_on_again(struct leat_stream_seek *seek)
{
    trim_begin(seek->owner);
}

void leat_call_stream_trim(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct trim_call *trim = leat_call_create(peer, frame, sizeof *trim);
    if (trim != NULL && leat_call_keep(&trim->call, &trim->kept, frame, trim_on_again))
        trim_begin(trim);
}
