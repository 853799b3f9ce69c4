/* SPDX-License-Identifier: Apache-2.0 */
/* Which version of a log the coordinator is told, and when: never before every copy of the started segments that are
 * not closed carries the version. */
#include "base/bug.h"
#include "replication/primary/state.h"

static bool set_is_ready(struct rep_set *set)
{
    const struct leat_primary_log *log = set->log;
    if (rep_set_is_closed(set) || set->dropping || !set->seg) return true;
    if (set->state > REP_SET_STARTED || set->resume) return false;
    if (set->stamped < log->version) return false;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        if (copy->state == REP_COPY_OPENING) {
            if (rep_set_is_started(set)) return false;
        } else if (copy->stamp < log->version || copy->incomplete) {
            return false;
        }
    }
    /* SUBTLE: acks need min-copies anyway, so a version on fewer copies gains nothing, and is harmful:
     *  1. Two of three copies are lost in turn; they hold all acked records.
     *  2. The version is raised all the same: from now on only the last copy counts.
     *  3. Its disk fails. The two lost copies come back, and neither counts. */
    bool few = rep_set_is_started(set) && rep_set_whole_count(set) < log->options.min_copies;
    if (few && !LEAT_BUG(TOLD_BY_FEW)) return false;
    /* The replacement first, while there is somewhere for it to go. */
    bool late = rep_now(log->primary) >= log->held_us + log->primary->options.open_wait_us;
    return !rep_set_is_started(set) || set->copy_count == rep_wanted(log) || late ||
           !rep_place_choose(set);
}

static bool version_is_ready(struct leat_primary_log *log)
{
    LEAT_LIST_EACH(&log->active, it)
    {
        if (set_is_ready(LEAT_CONTAINER(it, struct rep_set, link)) ||
            LEAT_BUG(VERSION_BEFORE_STAMPS))
            continue;
        return false;
    }
    return true;
}

void rep_version_step(struct leat_primary_log *log)
{
    LEAT_ASSERT_OWNER(log->primary->options.owner);
    if (!log->opened || log->need <= log->known || log->version_busy || log->fenced) return;
    if (!version_is_ready(log)) {
        rep_arm(log->primary, REP_TICK_US);
        return;
    }
    if (leat_list_empty(&log->version_link))
        leat_list_push_back(&log->primary->versions, &log->version_link);
}

void rep_versions_send(struct leat_primary *primary)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    if (primary->versions_busy || leat_list_empty(&primary->versions)) return;
    if (rep_now(primary) < primary->versions_retry_us) {
        rep_arm(primary, REP_RETRY_US);
        return;
    }
    struct leat_list *link;
    primary->version_count = 0;
    while (primary->version_count < REP_VERSION_ROWS_MAX &&
           (link = leat_list_pop_front(&primary->versions)) != NULL) {
        struct leat_primary_log *log = LEAT_CONTAINER(link, struct leat_primary_log, version_link);
        /* SUBTLE: while it stood in line another copy may have been lost. (1) All carry 4, and 4 is to
         * be told. (2) The next loss raises it to 5. (3) Were 5 told now, a crash would leave no copy
         * that counts. */
        if (!version_is_ready(log)) {
            rep_wait(log);
            continue;
        }
        if (log->version_alone && primary->version_count > 0) {
            leat_list_push_front(&primary->versions, link);
            break;
        }
        log->version_busy = true;
        primary->version_logs[primary->version_count] = log;
        primary->version_rows[primary->version_count++] = (struct leat_rep_version){
            .log = log->options.ref, .epoch = log->options.epoch, .version = log->version};
        if (log->version_alone) break;
    }
    if (primary->version_count == 0) return;
    primary->versions_busy = true;
    primary->options.events.on_versions(primary->options.owner, primary, primary->version_rows,
                                        primary->version_count);
}

void leat_primary_versions_done(struct leat_primary *primary, leat_err rc)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    LEAT_ASSERT(primary->versions_busy);
    primary->versions_busy = false;
    bool again = rc && leat_err_class(rc) == LEAT_CLASS_RETRY;
    if (again) primary->versions_retry_us = rep_now(primary) + REP_RETRY_US;
    /* A log that another node owns by now makes the coordinator refuse all rows of a request: sending each log by
     * itself shows which log this is. A version that is committed already may be sent again. */
    bool one = primary->version_count == 1;
    for (size_t i = 0; i < primary->version_count; i++) {
        struct leat_primary_log *log = primary->version_logs[i];
        if (!log) continue; /* destroyed meanwhile */
        log->version_busy = false;
        if (!rc) {
            primary->accounts.versions++;
            if (primary->version_rows[i].version > log->known)
                log->known = primary->version_rows[i].version;
            log->version_alone = false;
        } else if (!again && (one || LEAT_BUG(REFUSED_TOGETHER))) {
            log->fenced = true;
        } else if (!again) {
            log->version_alone = true;
        }
        rep_mark_dirty(log);
    }
    primary->version_count = 0;
}

uint32_t leat_primary_opening(struct leat_primary_log *rep)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    /* What every copy carries by now: not more, or a crash would leave no mark that counts. */
    uint32_t version = rep->version;
    bool few = false;
    LEAT_LIST_EACH(&rep->active, it)
    {
        const struct rep_set *set = LEAT_CONTAINER(it, struct rep_set, link);
        if (rep_set_is_closed(set) || !rep_set_is_started(set) || !set->seg) continue;
        few |= rep_set_whole_count(set) < rep->options.min_copies;
        if (set->stamped < version) version = set->stamped;
        for (unsigned i = 0; i < set->copy_count; i++) {
            const struct rep_copy *copy = set->copies[i];
            if (copy->state != REP_COPY_OPENING && !copy->incomplete && copy->stamp < version)
                version = copy->stamp;
        }
    }
    /* SUBTLE: nothing is acked before enough copies carry a new version, so until then copies that are lost may
     * count:
     *  1. A segment starts on A and B. The coordinators' disk is full: OPENED is refused, for now.
     *  2. B is lost. A asks again, with version 2, which only A's copy carries, and dies. The voters commit version
     *     2.
     *  3. A's disk fails. B comes back, and does not count: the log waits for a copy that no node has. */
    if (few && !LEAT_BUG(TOLD_BY_FEW)) version = rep->known;
    rep->opening = true;
    rep->known = version;
    return version;
}

void leat_primary_opened(struct leat_primary_log *rep, leat_err rc)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    LEAT_ASSERT(rep->opening);
    if (!rc) {
        rep->opened = true;
        rep->opening = false;
    } else if (leat_err_class(rc) != LEAT_CLASS_RETRY && !LEAT_BUG(UNOPENED_WAITS)) {
        /* SUBTLE: no version of it is ever taken. (1) A copy is lost: commits wait for a version. (2) The
         * stream is deleted, and OPENED is refused. (3) Its log can't go before they are answered. */
        rep->fenced = true;
    }
    rep_mark_dirty(rep);
}
