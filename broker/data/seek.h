/* SPDX-License-Identifier: Apache-2.0 */
/* Streams by name, for clients that may know of more than this node. Thread: a core. */
#ifndef LEAT_BROKER_DATA_SEEK_H
#define LEAT_BROKER_DATA_SEEK_H

#include "broker/data/confirm.h"
#include "broker/data/stream.h"

/** Find a stream that clients may learn of. seek: zeroed at first, with on_again and owner.
 *
 * LEAT_E_AGAIN and error->code LEAT_OK: on_again follows. Otherwise error says why not: UNKNOWN_STREAM, or a code of
 * class retry when the coordinators can't be asked. Thread: a core. */
leat_err leat_stream_seek(struct leat_core *core, struct leat_stream_seek *seek, const char *name,
                          size_t bytes, struct leat_stream **out_stream,
                          struct leat_error *error) LEAT_NODISCARD;

#endif
