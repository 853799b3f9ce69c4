/* SPDX-License-Identifier: Apache-2.0 */
/* One suite for every family of ports, written against base/port.h alone.
 *
 * A family gives a rig: some actors, whose ports the family makes, and a way to run the actors. Scripts run on the
 * actors and check with PORT_CHECK, which stops the process (scripts are not on cmocka's thread). */
#ifndef LEAT_TESTS_OS_PORT_SUITE_H
#define LEAT_TESTS_OS_PORT_SUITE_H

#include "base/assert.h"
#include "base/port.h"

#define PORT_CHECK(condition) LEAT_ASSERT(condition)

/* Actors that a rig has. LEFT and RIGHT have net and mail; DISK has mail and disk, LEFT also
 * reads. */
enum { PORT_LEFT = LEAT_ACTOR_CORE_0, PORT_RIGHT = 1, PORT_DISK = LEAT_ACTOR_STORE };

struct port_rig {
    void *ctx;
    const struct leat_env *(*env)(void *ctx, unsigned number);
    /** Register what runs on an actor. Before run(). Each of the three is attached. */
    void (*attach)(void *ctx, unsigned number, void *actor, const struct leat_actor_ops *ops,
                   void (*on_start)(void *actor));
    /** Run all actors until finish(), then end them (open connections end with on_closed); stops
     * the process when finish() does not come within a minute. */
    void (*run)(void *ctx);
    /** Thread: any actor's. */
    void (*finish)(void *ctx);
    const char *listen_address;  /* what to listen on; connect to what listen() gives back */
    const char *refused_address; /* where nobody listens */
};

struct port_family {
    const char *name;
    struct port_rig *(*make)(void);
    void (*drop)(struct port_rig *rig);
};

/** Run the whole suite; returns the number of failed tests. */
int port_suite_run(const struct port_family *family);

/* Parts; each has its own file. cmocka state: struct port_family *. */
int port_suite_net_run(const struct port_family *family);
int port_suite_net_ends_run(const struct port_family *family);

#endif
