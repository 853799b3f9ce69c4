/* SPDX-License-Identifier: Apache-2.0 */
/* What check.c and check_end.c know of a history. */
#ifndef LEAT_TESTS_SIM_CHECK_MODEL_H
#define LEAT_TESTS_SIM_CHECK_MODEL_H

#include "tests/sim/check.h"

struct slot { /* one offset of a log */
    struct check_value value;
    bool known, acked, seen, audited, sized;
    bool shown;     /* an earlier verifier found it, and the power has not gone since */
    uint32_t bytes; /* of the batch that begins here */
    uint32_t
        shared; /* the segment group + 1 that a member of a parallel group had it of; 0: none did */
};

/* Offsets jump far ahead after accepted loss, so slots come in pages; ascending. */
enum { PAGE_SLOTS = 512 };
struct page {
    uint64_t base;
    struct slot slots[PAGE_SLOTS];
};

struct log_model {
    struct page **pages;
    size_t page_count;
    uint64_t count;        /* highest known offset + 1 */
    uint64_t acked_end;    /* one past the highest that was acked */
    uint64_t count_at_cut; /* the same when the power was last cut */
    uint32_t waits;        /* how often it was found to wait */
    uint64_t jumped;       /* where it went on after the last loss that was accepted */
    uint64_t trim_low;     /* what is before it was given up for good */
    uint64_t trim_high;    /* ... and what is before this may have been */
    uint32_t trims_to_end; /* requests without an answer to give up all, whatever that may be */
    bool trim_asked;
    bool at_risk;   /* a power cut may have taken unflushed data of level memory */
    bool excused;   /* ... and the log said so: gaps are allowed */
    bool giving_up; /* an operator was asked to, and has no answer yet: it may have happened */
    uint64_t committed[CHECK_GROUPS_MAX], high[CHECK_GROUPS_MAX];
    uint32_t generation[CHECK_GROUPS_MAX], member[CHECK_GROUPS_MAX]; /* who read it last */
    /* An operator gave up the records at these offsets, and no others; to == 0: none. */
    uint64_t given_from, given_to;
};

struct record {
    enum check_disposition disposition;
    bool placed;
    uint32_t waits; /* of its log, when it was placed */
    uint32_t streamlet, log;
    uint64_t offset;
};

struct producer_model {
    struct record *records;
    uint32_t count, capacity;
};

struct stream_model {
    bool used, trims;
    uint32_t streamlets, logs;
    uint64_t keeps_bytes;
    enum leat_durability durability;
    struct log_model at[CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    struct producer_model producers[CHECK_PRODUCERS_MAX];
};

struct check {
    void (*fail)(void *ctx, const char *text);
    void *ctx;
    struct stream_model streams[CHECK_STREAMS_MAX];
    uint64_t acked, open;
};

/** Say what is wrong, to check->fail. */
void model_violation(struct check *check, const char *format, ...) LEAT_PRINTF(2, 3);
/** What is known of an offset; where nothing is, all zeros. */
const struct slot *model_slot(const struct log_model *log, uint64_t offset);
/** A trim that was asked for may have taken it. */
bool model_may_be_trimmed(const struct log_model *log, uint64_t offset);
/** An operator gave up all records from one offset up to the other. */
bool model_is_given_up(const struct log_model *log, uint64_t from, uint64_t to);
/** Where the log begins at the latest, if trims say so: between from and found. */
uint64_t model_trimmed_at_most(const struct log_model *log, uint64_t from, uint64_t found);

#endif
