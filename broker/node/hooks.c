/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of higher libraries that lower libraries call. */
#include "broker/node/hooks.h"

#include <string.h>

#include "broker/admin/calls.h"
#include "broker/data/serve.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"
#include "broker/node/native.h"
#include "broker/node/walk.h"
#include "broker/ownership/calls.h"
#include "broker/ownership/handover.h"

const struct leat_core_hooks leat_core_hooks = {
    .request = leat_peer_call,
    .drained = leat_fetch_undefer,
    .acked = leat_fetch_on_acked,
    .room = leat_append_on_room,
    .groups_attach = leat_groups_attach,
    .groups_made = leat_groups_log_made,
    .damaged = leat_repair_ask,
    .front_known = leat_adopt_damage_tell,
    .older = leat_takeover_older,
    .part_gone = leat_move_part_gone,
    .released = leat_walk_log_released,
};

bool leat_core_hooks_full(const struct leat_core_hooks *hooks)
{
    void (*entries[sizeof *hooks / sizeof(void (*)(void))])(void);
    _Static_assert(sizeof entries == sizeof *hooks, "functions and nothing else");
    memcpy(entries, hooks, sizeof *hooks);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (entries[i] == NULL) return false;
    return true;
}
