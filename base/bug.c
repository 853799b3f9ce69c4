/* SPDX-License-Identifier: Apache-2.0 */
/* See bug.h. */
#include "base/bug.h"

enum leat_bug leat_bug;
bool leat_bugs_met[LEAT_BUGS_END];
void (*leat_bug_on_met)(void);
