/* SPDX-License-Identifier: Apache-2.0 */
/* RECOVER: an operator accepts what a log has lost. */
#ifndef LEAT_BROKER_OWNERSHIP_RECOVER_H
#define LEAT_BROKER_OWNERSHIP_RECOVER_H

#include "wire/frame.h"

struct leat_peer;

void leat_call_recover(struct leat_peer *peer, const struct leat_frame *frame);

#endif
