/* SPDX-License-Identifier: Apache-2.0 */
/* One source of broker/ by itself. Each function that the source calls is the test's, which says what was called, with
 * which arguments, and in which order; a test compares this with the calls that it expects. Nothing runs but what the
 * test lets run. */
#ifndef LEAT_TESTS_BROKER_ALONE_H
#define LEAT_TESTS_BROKER_ALONE_H

#include "tests/broker/parts.h"

enum {
    ALONE_MAILS = 64,
    ALONE_CORES = 2,
    ALONE_SELF = 100, /* incarnation of the node */
    ALONE_STREAM = 7, /* the one stream that there is, "orders" */
    ALONE_STREAMLETS = 2,
    ALONE_LOGS = 2, /* of a streamlet: log q is on core q */
};

struct alone {
    struct leat_node node; /* "n1" */
    struct core_parts parts[ALONE_CORES];
    struct leat_env env;
    struct leat_clock clock;
    struct leat_post post;
    struct leat_disk disk;
    uint64_t now_us;
    struct leat_mail *mails[ALONE_MAILS];
    unsigned to[ALONE_MAILS], mail_count;
    struct leat_disk_io *io; /* what was submitted last */
    struct leat_stream stream;
    struct leat_stream_desc *desc;
    bool no_stream;                      /* leat_stream_find() finds none */
    struct leat_core cores[ALONE_CORES]; /* last: a sanitizer sees a look behind the last core */
};

/** A node with nothing under way; leat_stream_find() and leat_core_owns() answer by it. */
extern struct alone alone;
void alone_begin(void);
void alone_end(void);

/** One call: a line. Lines of the node log come by themselves, without what follows their first colon. */
void said(const char *format, ...) LEAT_PRINTF(1, 2);
/** What was said since the last time: each line with its line feed. */
#define assert_said(expected) assert_said_at(expected, __FILE__, __LINE__)
void assert_said_at(const char *expected, const char *file, int line);
/** The same of how it begins. */
#define assert_said_first(expected) assert_said_first_at(expected, __FILE__, __LINE__)
void assert_said_first_at(const char *expected, const char *file, int line);
/** The first line, if it begins so, is taken away. */
bool said_one(const char *begins);
/** The node log's last line, whole. */
const char *node_log_line(void);
/** Forget it. */
void said_enough(void);

/** Rows in memory of their own, for free(): a sanitizer sees a look behind the last row. */
void *alone_exact(const void *rows, size_t bytes);

/** The first message that is on its way comes to its core. false: there is none. */
bool alone_deliver(void);
void alone_deliver_all(void);
/** The read that was submitted ends. */
void alone_io_done(leat_err rc, size_t bytes);

/** "7/0/1", of a prefix id "100:a", of a tail record "segment 4 100:a next 50"; for said(). A few at one time. */
const char *ref_text(struct leat_log_ref ref);
const char *prefix_id_text(struct leat_prefix_id prefix_id);
const char *tail_text(const struct leat_tail_record *tail);

#endif
