/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's engine on a client that is a script: each lookup, request and fate is noted as it comes, as text, and
 * the test answers when and what it likes. */
#ifndef LEAT_TESTS_PRODUCER_STEPS_RIG_H
#define LEAT_TESTS_PRODUCER_STEPS_RIG_H

#include "producer/engine.h"
#include "producer/internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum {
    STEPS_RECORDS = 64,
    STEPS_APPENDS = 16,
    STEPS_LOGS = 32,
    STEPS_CODES = 5,
    STEPS_TIMEOUT_US = 500000
};

struct steps {
    struct leat_env env;
    struct leat_clock clock;
    struct leat_timers timers;
    uint64_t now_us;
    struct leat_producer_engine *engine;
    struct leat_request *appends[STEPS_APPENDS]; /* under way, oldest first */
    uint32_t append_count;
    struct leat_request *id;           /* asked; NULL: not */
    struct leat_client_lookup *lookup; /* under way; NULL: none */
    struct leat_client_stream stream;  /* as the client knows it; id 0: not */
    struct leat_client_log logs[STEPS_LOGS];
    leat_err send_rc; /* of the next send of an append */
    bool unsent;      /* what is asked has not left when it ends */
    bool withdraws;
    bool no_memory;               /* to cut batches: they go as they are */
    unsigned told[STEPS_RECORDS]; /* how often of each record's fate */
    char did[8192];
};
extern struct steps steps;
/** LEAT_OK for as many batches as an append has at most. */
extern const leat_err all_ok[STEPS_CODES];
/** The log in the last fate of a record of add_told(), and the number of such fates. */
extern struct leat_log_ref told_of;
extern unsigned told_count;

/** An engine of batches of so many records. */
void steps_begin(uint32_t batch_records);
/** Everything of it goes. */
void steps_end(void);
/** What an engine asks for its first record is answered: stream "s" has so many streamlets, the producer's id is `id`,
 * the epoch 3. */
void steps_first(uint32_t streamlets, int64_t id);
/** A stream "s" with so many streamlets, of two logs each, and the producer's id 100 with epoch 3; nothing is noted. */
void steps_ready(uint32_t batch_records, uint32_t streamlets);

/** Record number n of stream "s" for a streamlet, -1: any. */
leat_err steps_add(uint32_t n, int32_t streamlet);
/** The same, of a value of so many bytes, four at least. */
leat_err steps_add_sized(uint32_t n, int32_t streamlet, uint32_t bytes);
/** Records `from` to `to`, each of which is taken. */
void add(uint32_t from, uint32_t to, int32_t streamlet);
/** A record whose fate is in told_of (until then 7/7/7) and told_count. With `another`, record 9 is added when the fate
 * is told. */
void add_told(int32_t streamlet, bool another);
/** The very first append of a producer, whose sequence is 0, is under way: record 1. */
void first_under_way(void);
/** Records 1 to 3, each a batch, are under way in one append of a ready engine. */
void three_under_way(void);
/** For leat_producer_engine_on_room(): counts its calls in an unsigned. */
void count_call(void *arg);
/** When the engine comes round by itself, from now on; UINT64_MAX: not. */
uint64_t look_us(void);
/** Time goes on, then a turn ends. */
void steps_turn(uint64_t us);
/** All that was done since the last look was this. */
void steps_did(const char *want);

/** The lookup's answer. */
void steps_known(uint32_t id, uint32_t streamlets, uint32_t batch_bytes_max);
void steps_lookup_fails(leat_err rc, const char *text);
/** The answer to who asked for an id. */
void steps_id(int64_t id, int64_t epoch);
/** An answer of these that lacks its last byte. */
void steps_id_cut(int64_t id, int64_t epoch);
void steps_id_fails(leat_err rc, const char *text);
/** The oldest append's answer: a code for each batch, offsets from `offset` on. text NULL: none. */
void steps_answer(const leat_err *codes, uint64_t offset, const char *text);
/** The same, one code for all its batches, offsets from 10 on. */
void answer_all(leat_err code, const char *text);
/** The append ends with this code, without an answer. */
void steps_append_fails(leat_err rc, const char *text);
/** Its answer is these bytes. */
void steps_answer_bytes(const uint8_t *bytes, uint32_t count);

#endif
