/* SPDX-License-Identifier: Apache-2.0 */
/* Where logs begin and end, and where a time is in them: the native request. Requests of front ends:
 * broker/front_logs.h. */
#ifndef LEAT_BROKER_DATA_LOCATE_H
#define LEAT_BROKER_DATA_LOCATE_H

#include "broker/data/confirm.h"
#include "broker/data/lend.h"
#include "broker/net/core.h"

void leat_call_locate(struct leat_peer *peer, const struct leat_frame *frame);

#endif
