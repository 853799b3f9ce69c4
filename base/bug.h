/* SPDX-License-Identifier: Apache-2.0 */
/* Deliberate bugs, to show that the simulator finds them. Only in leat-sim-bugs; in any other program LEAT_BUG() is
 * the constant false, and nothing of these is compiled in.
 *
 * Each names a rule that keeps acknowledged data; `tools/sim --bugs` breaks the rules in turn, and reports how many
 * seeds were needed to see each bug. tests/sim/bugs.md has the table. */
#ifndef LEAT_BASE_BUG_H
#define LEAT_BASE_BUG_H

#include <stdbool.h>

enum leat_bug {
    LEAT_BUG_NONE,
#define LEAT_BUG_ROW(name, text, sentence) LEAT_BUG_##name,
#include "base/bug.def"
#undef LEAT_BUG_ROW
    LEAT_BUGS_END,
};

#ifdef LEAT_BUGS
/* The bug of this run. Set once, before anything runs; read by all threads. */
extern enum leat_bug leat_bug;
/* The bugs whose rules this run has reached. A run that never reaches a rule is the same when this rule is broken.
 * Only for the simulator, which has a single thread. */
extern bool leat_bugs_met[LEAT_BUGS_END];
/* Called where the run reaches the broken rule; NULL: not called. */
extern void (*leat_bug_on_met)(void);
static inline bool leat_bug_is(enum leat_bug bug)
{
    leat_bugs_met[bug] = true;
    if (leat_bug != bug) return false;
    if (leat_bug_on_met) leat_bug_on_met();
    return true;
}
#define LEAT_BUG(name) leat_bug_is(LEAT_BUG_##name)
#else
#define LEAT_BUG(name) (false)
#endif

#endif
