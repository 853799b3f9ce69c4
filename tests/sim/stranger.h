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
/** A process of one actor, which does what is posted to it. */
struct sim_actor *sim_idle_actor(struct sim_world *world, const char *name);

/* ---- honest.c ---- */
void sim_honest_start(struct scenario *scenario);
/** The stranger has gone. */
void sim_honest_alone(void);
/** Were all of them answered since? */
bool sim_honest_answered(void);

#endif
