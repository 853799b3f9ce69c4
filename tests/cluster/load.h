/* SPDX-License-Identifier: Apache-2.0 */
/* Real producers against a real leatd, and the memory of what was acked: shared by the tests that
 * kill the server. Thread: one, but for the producers' own. */
#ifndef LEAT_TESTS_CLUSTER_LOAD_H
#define LEAT_TESTS_CLUSTER_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LOAD_PRODUCERS = 4, LOAD_RECORDS_MAX = 1 << 20 };

struct server {
    const char *leatd, *leat;
    char data[200], address[64];
    pid_t pid;
};
/** Start and wait for the line that says ready. */
void server_start(struct server *server);
/** kill -9, and wait until it is gone. */
void server_kill(struct server *server);
void server_stop(struct server *server); /* SIGTERM; must leave with 0 */
/** Run leat with these words; stops the test unless it succeeds. NULL-terminated. */
void server_leat(const struct server *server, const char *const *words);
/** "127.0.0.1:PORT", free now. */
void address_choose(char out[64]);

struct load;
/** Producers for these streams (of LOAD_PRODUCERS threads together), started. */
struct load *load_start(const struct server *server, const char *const *streams, unsigned count);
/** Wait until `more` further records have been acked. Returns how many are unanswered then. */
uint64_t load_wait(struct load *load, uint64_t more);
uint64_t load_acked(const struct load *load);
/** No further records; wait until everything is answered. */
void load_finish(struct load *load);
/** Read each stream from its beginning and compare: every acked record at its offset, once, in
 * order of its producer; offsets dense. Stops the test otherwise. */
void load_verify(const struct load *load);
void load_destroy(struct load **load);

/** kill -STOP, and wait until every thread stands still. */
void server_freeze(struct server *server);
/** Called by fail() before fail() ends the test; may be NULL. */
extern void (*fail_cleanup)(void);

uint64_t now_us(void);
/** Repeatable random numbers for the moments of death. */
uint64_t random_next(uint64_t *state);
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
