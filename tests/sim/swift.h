/* A stream whose requests are answered in time, whatever happens to others. Private to the simulator. */
#ifndef LEAT_TESTS_SIM_SWIFT_H
#define LEAT_TESTS_SIM_SWIFT_H

#include "tests/sim/scenario.h"

void sim_swift_start(struct scenario *scenario);
/** Whoever comes now damages what is stored. */
void sim_swift_end(void);

#endif
