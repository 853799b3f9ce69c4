/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile client: a process that does to the servers' ports what a schedule of bytes says. Private to
 * the simulator and to the fuzz target of whole worlds. */
#ifndef LEAT_TESTS_SIM_STRANGER_H
#define LEAT_TESTS_SIM_STRANGER_H

#include "tests/sim/scenario.h"

enum {
    SIM_STRANGER_CONNS = 64,            /* open at once; the oldest is closed for a new one */
    SIM_STRANGER_US_MAX = 90 * 1000000, /* virtual: a schedule ends then, whatever is left */
    SIM_STRANGER_OLD_RECORDS = 800,     /* of a world with old records, all producers together */
    SIM_STRANGER_OLD_BYTES = 1600,      /* ... of most of them, at most */
};

/* What an opcode's low four bits mean; docs in stranger.c beside each. The high four bits are its argument. */
enum sim_stranger_op {
    SIM_STRANGER_WAIT,
    SIM_STRANGER_CONNECT,
    SIM_STRANGER_BYTES,
    SIM_STRANGER_ANNOUNCE,
    SIM_STRANGER_HELLO,
    SIM_STRANGER_REQUEST,
    SIM_STRANGER_KAFKA,
    SIM_STRANGER_NODE_HELLO,
    SIM_STRANGER_NODE_FRAME,
    SIM_STRANGER_CLOSE,
    SIM_STRANGER_DEAF,
    SIM_STRANGER_HEAR,
    SIM_STRANGER_REPEAT,
    SIM_STRANGER_DRIBBLE,
    SIM_STRANGER_PULL,
    SIM_STRANGER_FAULT,
};

/** Play a schedule from the moment on at which the streams are made; old: at which most records are stored,
 * too, and have left memory. bytes: borrowed for the whole run. Honest clients (honest.c) have to be answered
 * within 10 s of virtual time meanwhile, and no stream or node may appear whose name begins with "strange":
 * nobody but the stranger asks for one. Either fails the seed. */
void sim_stranger_start(struct scenario *scenario, bool old, const uint8_t *bytes, size_t count);
/** Has the schedule ended, and was every honest client answered after it? */
bool sim_stranger_done(struct scenario *scenario);
/** The same beside clients that are watched by others: without honest.c, and what it reads slowly by so many bytes a
 * second of each connection. */
void sim_stranger_beside(struct scenario *scenario, const uint8_t *bytes, size_t count,
                         size_t sip_bytes);
/* ---- stranger_seed.c ---- */
/** Decide whether the seed has a stranger, and what the stranger does. From now on. */
void sim_stranger_choose(struct scenario *scenario);
/* ---- crowd.c ---- */
/** What is asked about groups that nobody has heard of: requests of Kafka's protocol. */
enum sim_crowd {
    SIM_CROWD_JOIN,
    SIM_CROWD_COMMIT,
    SIM_CROWD_FETCH,
    SIM_CROWD_DESCRIBE,
    SIM_CROWD_FIND,
    SIM_CROWD_LIST,
    SIM_CROWDS
};
enum {
    SIM_CROWD_HOME = 7,   /* which of the honest groups has the same home */
    SIM_CROWD_ANY = 8,    /* or whatever home the names have */
    SIM_CROWD_LONG = 16,  /* names as long as they may be */
    SIM_CROWD_LARGE = 32, /* and whatever is to be kept beside them */
    SIM_CROWD_SAME = 64,  /* always the same group */
};
/** One request; how: of the above. *serial: names that were used. Returns how many of `out`'s bytes it has, which
 * has room for SIM_KAFKA_REQUEST_BYTES_MAX. */
size_t sim_crowd_ask(uint8_t *out, enum sim_crowd what, unsigned how, unsigned *serial,
                     uint32_t number);

/* ---- member.c ---- */
#define SIM_HONEST "honest-" /* how the names of their groups begin, which nobody else may say */
void sim_member_group(char *out, size_t bytes, unsigned member, unsigned group);
void sim_members_start(struct scenario *scenario, struct sim_actor *actor);
/** The stranger has gone. */
void sim_members_alone(void);
/** When a commit of theirs is answered next, all servers end. */
void sim_members_strike(void);
/** Has each been in two groups since? */
bool sim_members_served(void);

/* ---- honest.c ---- */
void sim_honest_start(struct scenario *scenario);
/** The stranger has gone. */
void sim_honest_alone(void);
/** Were all of them answered since? */
bool sim_honest_answered(void);

#endif
