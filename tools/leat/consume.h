/* SPDX-License-Identifier: Apache-2.0 */
/* leat consume: whether all logs were read to their real ends. */
#ifndef LEAT_TOOLS_LEAT_CONSUME_H
#define LEAT_TOOLS_LEAT_CONSUME_H

#include "tools/leat/cli.h"

struct consume_ends;
enum consume_look {
    CONSUME_WHOLE,   /* every log has an end, and had the end when it was read */
    CONSUME_AGAIN,   /* not all the time: read on, and look again */
    CONSUME_MISSING, /* named on standard error: these logs have none */
    CONSUME_UNASKED, /* no server tells */
};
/** Before anything is read. CLI_NONE: all. The name is borrowed. */
struct consume_ends *consume_ends_begin(const char *stream, uint64_t streamlet, uint64_t log);
/** After everything was read. quiet: names nothing. */
enum consume_look consume_ends_look(struct consume_ends *ends, bool quiet);
void consume_ends_free(struct consume_ends *ends);

#endif
