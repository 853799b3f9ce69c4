/* SPDX-License-Identifier: Apache-2.0 */
/* The table of hooks. */
#ifndef LEAT_BROKER_NODE_HOOKS_H
#define LEAT_BROKER_NODE_HOOKS_H

#include "broker/net/hooks.h"

extern const struct leat_core_hooks leat_core_hooks;
/** Each entry has a function. */
bool leat_core_hooks_full(const struct leat_core_hooks *hooks);

#endif
