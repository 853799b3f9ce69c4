/* SPDX-License-Identifier: Apache-2.0 */
/* The assertions on a log's segments and copies between two turns: each rule is broken once, in structs that the test
 * makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replication/primary/state.h"
#include "tests/broken.h"

static struct leat_primary_log log_, other_log;
static struct rep_set sets[2]; /* the first one is closed, and lacks nothing */
static struct rep_copy copies[2];
static struct rep_peer peers[2];
static struct leat_primary primary_;
static struct leat_rmem_target target;
static struct rep_op op;
static struct leat_store_req req;
static struct leat_segment seg;

/* A head with two copies behind a closed segment. */
static void sound(void)
{
    log_ = (struct leat_primary_log){.primary = &primary_, .version = 5, .need = 5, .known = 4};
    leat_list_init(&log_.active);
    leat_list_init(&log_.settled);
    op = (struct rep_op){.copy = &copies[0]};
    primary_ = (struct leat_primary){.attached_count = 2, .peer_end = LEAT_REP_NODES_MAX};
    for (unsigned i = 0; i < 2; i++) {
        peers[i] = (struct rep_peer){
            .primary = &primary_, .state = REP_PEER_ATTACHED, .session = 7, .target = &target};
        primary_.peers[i ? LEAT_REP_NODES_MAX - 1 : 0] = &peers[i];
    }
    for (unsigned i = 0; i < 2; i++) {
        sets[i] = (struct rep_set){.log = &log_,
                                   .id = {7 + i},
                                   .seg = &seg,
                                   .state = i == 0 ? REP_SET_CLOSED : REP_SET_STARTED,
                                   .stamped = 5,
                                   .writes = 3};
        leat_list_init(&sets[i].link);
        leat_list_push_back(&log_.active, &sets[i].link);
        copies[i] = (struct rep_copy){.set = &sets[1],
                                      .peer = &peers[i],
                                      .session = 7,
                                      .state = REP_COPY_OPEN,
                                      .counted = true,
                                      .sent = 300,
                                      .done = 200,
                                      .flushed = 100,
                                      .stamp = 3,
                                      .stamp_sent = 4,
                                      .writes = 2};
    }
    sets[1].copy_count = 2;
    for (unsigned i = 0; i < 2; i++)
        sets[1].copies[i] = &copies[i];
    sets[0].close = sets[1].commit = &req;
    copies[0].op = &op;
}

/* The head's only request, in that state. */
static void sets_ask(struct leat_store_req **which, enum rep_set_state state)
{
    sets[1].commit = NULL;
    *which = &req;
    sets[1].state = state;
}

#define PEER_BROKEN(rule, ...)                                                                     \
    do {                                                                                           \
        sound();                                                                                   \
        assert_broken(NULL, leat_primary_check(&primary_));                                        \
        __VA_ARGS__;                                                                               \
        assert_broken(rule, leat_primary_check(&primary_));                                        \
    } while (0)

#define BROKEN(rule, ...)                                                                          \
    do {                                                                                           \
        sound();                                                                                   \
        assert_broken(NULL, leat_primary_log_check(&log_));                                        \
        __VA_ARGS__;                                                                               \
        assert_broken(rule, leat_primary_log_check(&log_));                                        \
    } while (0)

static void segments_are_checked(void **state)
{
    (void)state;
    BROKEN("rep->need <= rep->version", log_.need = 6);
    BROKEN("rep->known <= rep->version", log_.known = 6);
    BROKEN("before == NULL || before->id.v < set->id.v", sets[1].id.v = 7);
    BROKEN("set->log == log", sets[1].log = &other_log);
    BROKEN("set->stamped <= log->version", sets[1].stamped = 6);
    BROKEN("asked <= 1", sets[1].reserve = &req);
    BROKEN("asked <= 1", sets[1].close = &req);
    BROKEN("asked <= 1", sets[1].hibernate = &req);
    BROKEN("asked <= 1", sets[1].resume = &req);
    static const char reserving[] = "(set->reserve != NULL) == (set->state == REP_SET_RESERVING)";
    BROKEN(reserving, sets[1].commit = NULL, sets[1].reserve = &req);
    BROKEN(reserving, sets[1].commit = NULL, sets[1].state = REP_SET_RESERVING);
    BROKEN("set->commit == NULL || set->state == REP_SET_STARTED", sets[1].state = REP_SET_CLOSED);
    BROKEN("set->close == NULL || set->state == REP_SET_CLOSED", sets[0].state = REP_SET_STARTED);
    BROKEN(NULL, sets_ask(&sets[1].hibernate, REP_SET_HIBERNATING));
    BROKEN(NULL, sets_ask(&sets[1].hibernate, REP_SET_HIBERNATED));
    BROKEN("set->hibernate == NULL || rep_set_is_hibernated(set)",
           sets_ask(&sets[1].hibernate, REP_SET_STARTED));
    BROKEN("set->hibernate != NULL || set->state != REP_SET_HIBERNATING", sets[1].commit = NULL,
           sets[1].state = REP_SET_HIBERNATING);
    BROKEN(NULL, sets_ask(&sets[1].resume, REP_SET_RESUMING));
    BROKEN(NULL, sets_ask(&sets[1].resume, REP_SET_STARTED));
    BROKEN("set->resume == NULL || set->state == REP_SET_RESUMING || set->state == REP_SET_STARTED",
           sets_ask(&sets[1].resume, REP_SET_HIBERNATED));
    BROKEN("set->resume != NULL || set->state != REP_SET_RESUMING", sets[1].commit = NULL,
           sets[1].state = REP_SET_RESUMING);
    BROKEN("set->seg != NULL || set->state == REP_SET_RESERVING || set->dropping",
           sets[1].seg = NULL);
    BROKEN(NULL, sets[1].seg = NULL, sets[1].dropping = true);
    BROKEN("set->copies[j]->peer != set->copies[i]->peer", copies[1].peer = &peers[0]);
}

static void copies_are_checked(void **state)
{
    (void)state;
    BROKEN("copy->set == set && copy->peer != NULL", copies[1].set = &sets[0]);
    BROKEN("copy->set == set && copy->peer != NULL", copies[1].peer = NULL);
    BROKEN("rep_copy_lives(copy)", peers[1].session = 8);
    BROKEN("rep_copy_lives(copy)", peers[1].state = REP_PEER_CONNECTING);
    BROKEN("copy->op == NULL || (copy->op->copy == copy && !copy->batched)", op.copy = &copies[1]);
    BROKEN("copy->op == NULL || (copy->op->copy == copy && !copy->batched)",
           copies[0].batched = true);
    BROKEN(NULL, copies[1].batched = true);
    BROKEN("copy->done <= copy->sent", copies[1].done = 301);
    BROKEN("copy->flushed <= copy->done", copies[1].flushed = 201);
    BROKEN("copy->stamp <= copy->stamp_sent", copies[1].stamp = 5);
    BROKEN("copy->stamp_sent <= set->log->version", copies[1].stamp_sent = 6);
    BROKEN("copy->writes <= set->writes", copies[1].writes = 4);
    BROKEN("copy->state != REP_COPY_OPENING || !copy->counted", copies[1].state = REP_COPY_OPENING);
}

static void backups_are_checked(void **state)
{
    (void)state;
    static const char made[] = "(peer->target != NULL) == (peer->state >= REP_PEER_CONNECTING)";
    PEER_BROKEN(made, peers[1].target = NULL);
    PEER_BROKEN(made, peers[1].state = REP_PEER_UP);
    PEER_BROKEN("peer->attach_busy || peer->state != REP_PEER_ASKED", peers[1].target = NULL,
                peers[1].state = REP_PEER_ASKED);
    PEER_BROKEN("!peer->attach_busy || peer->state < REP_PEER_CONNECTING",
                peers[1].attach_busy = true);
    PEER_BROKEN("peer->settle_count == 0", peers[1].settle_count = 1);
    static const char told[] = "peer->audit_state != REP_AUDIT_SETTLING || peer->settle_sent > 0";
    PEER_BROKEN(told, peers[1].audit_state = REP_AUDIT_SETTLING);
    PEER_BROKEN(NULL, peers[1].audit_state = REP_AUDIT_SETTLING, peers[1].settle_sent = 1);
    PEER_BROKEN("primary->attached_count == attached", primary_.attached_count = 1);
}

/* Goal: a segment, a copy, a session and the requests of each take the steps that the diagrams in
 * replication/primary/README.md show, and no others. */
static void steps_are_checked(void **state)
{
    (void)state;
    sound();
    static const char *const set_may[] = {
        [REP_SET_RESERVING] = ".R.....",  [REP_SET_RESERVED] = "..S....",
        [REP_SET_STARTED] = "...P..C",    [REP_SET_HIBERNATING] = "..S.P..",
        [REP_SET_HIBERNATED] = ".....R.", [REP_SET_RESUMING] = "..S.P..",
        [REP_SET_CLOSED] = "......."};
    assert_steps(sets[0].state, set_may, "follow[set->state] & 1u << to",
                 rep_set_enter(&sets[0], step_to));
    static const char *const peer_may[] = {[REP_PEER_DOWN] = ".U...",
                                           [REP_PEER_UP] = "D.A..",
                                           [REP_PEER_ASKED] = "DU.C.",
                                           [REP_PEER_CONNECTING] = "DU..A",
                                           [REP_PEER_ATTACHED] = "DU..."};
    assert_steps(peers[0].state, peer_may, "follow[peer->state] & 1u << to",
                 rep_peer_enter(&peers[0], step_to));
    static const char *const copy_may[] = {[REP_COPY_OPENING] = ".O.C",
                                           [REP_COPY_OPEN] = "..PC",
                                           [REP_COPY_HIBERNATED] = ".O..",
                                           [REP_COPY_CLOSED] = "...."};
    assert_steps(copies[0].state, copy_may, "follow[copy->state] & 1u << to",
                 rep_copy_enter(&copies[0], step_to));
    static const char *const local_may[] = {
        [REP_LOCAL_IDLE] = "IA.", [REP_LOCAL_ASKED] = "..A", [REP_LOCAL_ANSWERED] = "IA."};
    assert_steps(sets[0].local_state, local_may, "follow[set->local_state] & 1u << to",
                 rep_local_enter(&sets[0], step_to));
    static const char *const audit_may[] = {
        [REP_AUDIT_IDLE] = ".AS", [REP_AUDIT_ASKED] = "I..", [REP_AUDIT_SETTLING] = "I.."};
    assert_steps(peers[0].audit_state, audit_may, "follow[peer->audit_state] & 1u << to",
                 rep_audit_enter(&peers[0], step_to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_checked),
        cmocka_unit_test(copies_are_checked),
        cmocka_unit_test(backups_are_checked),
        cmocka_unit_test(steps_are_checked),
    };
    return cmocka_run_group_tests_name("replication check", tests, NULL, NULL);
}
