/* SPDX-License-Identifier: Apache-2.0 */
/* What the coordinators know more than this node does: asked for before an answer that would be
 * wrong if another node were the owner by now. Private to broker/ and kafka/. */
#ifndef LEAT_BROKER_DATA_CONFIRM_H
#define LEAT_BROKER_DATA_CONFIRM_H

#include "broker/data/news.h"
#include "coordinator/coordinator.h"

struct leat_core;

/* ---- seek.c ---- */
struct leat_catch_up {
    struct leat_coordinate request;
    struct leat_mail mail;
    struct leat_news news;
    struct leat_core *core;
    uint64_t address; /* for whom it is asked: leat_peer_asks(). 0: for the node */
    uint32_t at;
    bool second_round;
    /** This core knows of everything that was committed when leat_catch_up() was called. */
    void (*on_done)(struct leat_catch_up *catch_up, leat_err rc);
    void *owner;
};
/** Thread: a core. */
void leat_catch_up(struct leat_core *core, struct leat_catch_up *catch_up);

/* ---- confirm.c ---- */
/* Caller's storage until on_done, or until it takes the link out of its list: then nobody is told. */
struct leat_confirm {
    struct leat_list link;
    /** Once, never from within leat_confirm_ask(). LEAT_OK: this core knows of every change of owners
     * that was committed before it was asked. Else that could not be found out: the answer that
     * waits for it must not be given. */
    void (*on_done)(struct leat_confirm *confirm, leat_err rc);
    void *owner;
};
/* Of one core. However many ask, one catching up is under way: those who ask meanwhile wait for the
 * next one, because what is under way may have been asked for before whatever they have seen. */
struct leat_confirmer {
    struct leat_list asked, waiting;
    struct leat_catch_up catch_up;
    bool busy;
};
void leat_confirmer_init(struct leat_core *core);
/** May another node have become the owner without this one's doing? A server alone need not ask. */
bool leat_confirm_needed(const struct leat_core *core);
/** Takes LEAT_CATCH_UP_US_MAX at most, twice that when others have asked before. Thread: the core. */
void leat_confirm_ask(struct leat_core *core, struct leat_confirm *confirm);

#endif
