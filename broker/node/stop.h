/* SPDX-License-Identifier: Apache-2.0 */
/* A node stops. */
#ifndef LEAT_BROKER_NODE_STOP_H
#define LEAT_BROKER_NODE_STOP_H

#include "base/port.h"

struct leat_core;

/** At the end of a turn of a core that is `ending`. */
void leat_core_ending(struct leat_core *core);

#endif
