/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to METADATA of a client's world for tests. */
#ifndef LEAT_TESTS_CLIENT_FAKE_METADATA_H
#define LEAT_TESTS_CLIENT_FAKE_METADATA_H

#include "tests/client/fake_server.h"
#include "wire/message.h"

/** Write the answer of the node of this address to `frame`; a question that may create the stream makes it. */
void fake_metadata_write(struct fake_world *world, const char *address,
                         const struct leat_frame *frame, struct leat_msg_writer *body);

#endif
