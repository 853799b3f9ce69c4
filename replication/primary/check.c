/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of a log's segments and their copies between two turns. */
#include "replication/primary/state.h"

/* Bytes go to a copy's memory, are confirmed, and are flushed, in this order; versions likewise. */
static void copy_check(const struct rep_set *set, const struct rep_copy *copy)
{
    LEAT_ASSERT(copy->set == set && copy->peer != NULL);
    LEAT_ASSERT(rep_copy_lives(copy)); /* the end of a session takes its copies out of all sets */
    LEAT_ASSERT(copy->op == NULL || (copy->op->copy == copy && !copy->batched));
    LEAT_ASSERT_CMP(copy->done, <=, copy->sent);
    LEAT_ASSERT_CMP(copy->flushed, <=, copy->done);
    LEAT_ASSERT_CMP(copy->stamp, <=, copy->stamp_sent);
    LEAT_ASSERT_CMP(copy->stamp_sent, <=, set->log->version);
    LEAT_ASSERT_CMP(copy->writes, <=, set->writes);
    /* Acks wait for no copy that its backup has not made. */
    LEAT_ASSERT(copy->state != REP_COPY_OPENING || !copy->counted);
}

static void set_check(const struct leat_primary_log *log, const struct rep_set *set)
{
    LEAT_ASSERT(set->log == log);
    LEAT_ASSERT_CMP(set->stamped, <=, log->version);
    /* The log asks for one of these at a time. */
    unsigned asked = (set->reserve != NULL) + (set->commit != NULL) + (set->close != NULL) +
                     (set->hibernate != NULL) + (set->resume != NULL);
    LEAT_ASSERT_CMP(asked, <=, 1);
    /* Each request is asked in its states; RESERVING, HIBERNATING and RESUMING are those of a request. */
    LEAT_ASSERT((set->reserve != NULL) == (set->state == REP_SET_RESERVING));
    LEAT_ASSERT(set->commit == NULL || set->state == REP_SET_STARTED);
    LEAT_ASSERT(set->close == NULL || set->state == REP_SET_CLOSED);
    LEAT_ASSERT(set->hibernate == NULL || rep_set_is_hibernated(set));
    LEAT_ASSERT(set->hibernate != NULL || set->state != REP_SET_HIBERNATING);
    LEAT_ASSERT(set->resume == NULL || set->state == REP_SET_RESUMING ||
                set->state == REP_SET_STARTED);
    LEAT_ASSERT(set->resume != NULL || set->state != REP_SET_RESUMING);
    LEAT_ASSERT(set->seg != NULL || set->state == REP_SET_RESERVING || set->dropping);
    for (unsigned i = 0; i < set->copy_count; i++) {
        copy_check(set, set->copies[i]);
        /* The loss of a node must cost a segment at most one copy. */
        for (unsigned j = 0; j < i; j++)
            LEAT_ASSERT(set->copies[j]->peer != set->copies[i]->peer);
    }
}

static void peer_check(const struct rep_peer *peer)
{
    LEAT_ASSERT((peer->target != NULL) == (peer->state >= REP_PEER_CONNECTING));
    LEAT_ASSERT(peer->attach_busy || peer->state != REP_PEER_ASKED);
    LEAT_ASSERT(!peer->attach_busy || peer->state < REP_PEER_CONNECTING);
    LEAT_ASSERT_CMP(peer->settle_count, ==, 0); /* what an audit has found is told in its turn */
    LEAT_ASSERT(peer->audit_state != REP_AUDIT_SETTLING || peer->settle_sent > 0);
}

void leat_primary_check(const struct leat_primary *primary)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    unsigned attached = 0;
    for (unsigned i = 0; i < primary->peer_end; i++) {
        const struct rep_peer *peer = primary->peers[i];
        if (peer == NULL) continue;
        peer_check(peer);
        attached += peer->state == REP_PEER_ATTACHED;
    }
    LEAT_ASSERT_CMP(primary->attached_count, ==, attached);
}

void leat_primary_log_check(const struct leat_primary_log *rep)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    /* Acks that need a version which the log never had would wait for ever. */
    LEAT_ASSERT_CMP(rep->need, <=, rep->version);
    LEAT_ASSERT_CMP(rep->known, <=, rep->version);
    const struct rep_set *before = NULL;
    LEAT_LIST_EACH(&rep->active, it)
    {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        LEAT_ASSERT(before == NULL || before->id.v < set->id.v);
        set_check(rep, set);
        before = set;
    }
#ifdef LEAT_SLOW_CHECKS /* a log may have thousands of these, and few turns change one */
    LEAT_LIST_EACH(&rep->settled, it)
    {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        set_check(rep, set);
    }
#endif
}
