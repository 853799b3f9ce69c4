/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: the queue, their entries, the way to the leader. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_REQUESTS_H
#define LEAT_COORDINATOR_MEMBERSHIP_REQUESTS_H

#include "coordinator/membership/state.h"

/* queue.c */
void co_requests_init(struct leat_coordinator *coordinator);
/** Sends all requests again that were sent and are not applied. */
void co_requests_again(struct leat_coordinator *coordinator);
void co_requests_fail(struct leat_coordinator *coordinator, leat_err rc, const char *why);
void co_request_answer(struct leat_coordinator *coordinator, struct leat_coordinate *request);
void co_request_refuse(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                       leat_err rc, const char *why);
void co_queue_put(struct leat_coordinator *coordinator, struct leat_coordinate *request,
                  bool front);
void co_queue_remove(struct leat_coordinator *coordinator, struct leat_coordinate *request);
/** Of a refused ADOPT. */
void co_decisions_drop(struct leat_coordinate *request);

/* requests.c */
void co_requests_advance(struct leat_coordinator *coordinator);
void co_requests_tick(struct leat_coordinator *coordinator, uint64_t now_us);
/** The tables were replaced: answers requests whose outcome the tables have, sends the rest again. */
void co_requests_restored(struct leat_coordinator *coordinator);
void co_requests_applied(struct leat_coordinator *coordinator,
                         const struct leat_machine_result *result);
/** Propose records: this node's own, or records that a peer asks for and has the right to. Leader only. */
leat_err co_records_submit(struct leat_coordinator *coordinator, const struct co_peer *peer,
                           const uint8_t *bytes, size_t count) LEAT_NODISCARD;

/* commands.c */
const char *co_request_offence(const struct leat_coordinate *request);
/** Sets the error of a drain of the last node that is not drained. */
leat_err co_drain_refuse(struct leat_coordinate *request);
/** Fill request->bytes with records; sets request->sequence. */
leat_err co_request_encode(struct leat_coordinator *coordinator,
                           struct leat_coordinate *request) LEAT_NODISCARD;
leat_err co_adopt_encode(struct leat_coordinator *coordinator,
                         struct leat_coordinate *request) LEAT_NODISCARD;
void co_form_command(struct leat_msg_writer *writer, const uint8_t cluster_id[16]);

/* tails.c */
leat_err co_tails_answer(struct leat_coordinator *coordinator,
                         struct leat_coordinate *request) LEAT_NODISCARD;

#endif
