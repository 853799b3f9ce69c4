/* SPDX-License-Identifier: Apache-2.0 */
/* Forming a cluster, joining, and changes of its voters. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_FORMING_H
#define LEAT_COORDINATOR_MEMBERSHIP_FORMING_H

#include "coordinator/membership/state.h"

/* form.c */
leat_err co_form_open(struct leat_coordinator *coordinator, bool is_new, struct leat_error *error);
void co_form_advance(struct leat_coordinator *coordinator);
void co_form_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket);
void co_join_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket);

/* members.c */
/** Begin; the answer goes to the request or the ticket. */
void co_change_begin(struct leat_coordinator *coordinator, bool replace, const char *node,
                     struct leat_coordinate *request, const struct leat_link_ticket *ticket);
void co_change_advance(struct leat_coordinator *coordinator);
void co_change_end(struct leat_coordinator *coordinator, leat_err rc, const char *why);

#endif
