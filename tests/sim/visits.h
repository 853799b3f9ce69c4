/* SPDX-License-Identifier: Apache-2.0 */
/* What a cluster seed has visited: pairs of what happens and of what is under way just then. */
#ifndef LEAT_TESTS_SIM_VISITS_H
#define LEAT_TESTS_SIM_VISITS_H

#include <stdint.h>

#include "tests/sim/sim.h"

enum sim_visit {
#define SIM_VISIT_ROW(id, name, text) SIM_VISIT_##id,
#include "tests/sim/visits.def"
#undef SIM_VISIT_ROW
    SIM_VISITS,
};
_Static_assert(SIM_VISITS <= 64, "a bit each");

struct scenario;
struct sim_server;

/* How often each was met, and when first: world->event_count, 0 is never. */
struct sim_visited {
    uint64_t count[SIM_VISITS], first[SIM_VISITS];
};

const char *sim_visit_name(enum sim_visit visit);
void sim_visited_add(struct sim_visited *to, const struct sim_visited *from);
/** A line of them; zeros: also those that were never met. */
void sim_visits_print(const struct sim_visited *visited, bool zeros);
/** How many were met less often than so many seeds are to meet each. */
int sim_visits_rare(const struct sim_visited *visited, uint64_t seeds);
/** From now on, while anything goes wrong. */
void sim_visits_start(struct scenario *scenario);
/** A server of a cluster has started: its turns are looked at. */
void sim_visits_watch(struct sim_server *server);
/** Run the world until then, and look on the way. Draws nothing and schedules nothing: a seed goes as it would without.
 */
void sim_visits_look(struct scenario *scenario, uint64_t until_us);
/** The machine of this server is about to lose its node. */
void sim_visits_death(struct sim_server *server, enum sim_death death);

#endif
