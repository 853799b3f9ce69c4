/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the `leat` program share: options, one request at a time, tables, progress. */
#ifndef LEAT_TOOLS_LEAT_CLI_H
#define LEAT_TOOLS_LEAT_CLI_H

#include "client/shared.h"
#include "wire/message.h"

#include <stdio.h>

/* Exit codes; --help names them. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* the server refused, or records were lost or left */
    CLI_USAGE = 2,
    CLI_NO_SERVER = 3,
    CLI_INCOMPLETE = 4, /* of consume: a log's end is missing */
};

/* ---- options ---- */
enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_U64, CLI_BYTES, CLI_S, CLI_MS, CLI_US, CLI_SPAN };
struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum cli_kind kind;
    void *out; /* bool, const char *, or uint64_t */
};
/**
 * Take options out of argv; the remaining arguments are the operands, in place. Numbers of kind BYTES take K, M, G
 * (1024); MS and US take us, ms, s, m, h, d;
 * S too, where a bare number is seconds and *out milliseconds; SPAN too, in milliseconds, where a unit is required: a
 * user who takes 3600 for seconds would lose records older than 3.6 s.
 * Returns the number of operands, or -1 after a message (usage error).
 */
int cli_parse(int argc, char **argv, const struct cli_option *options, size_t count);
extern const char *cli_brokers; /* -b, --brokers; NULL: the library's default */
#define CLI_COMMON                                                                                 \
    {                                                                                              \
        "brokers", 'b', CLI_TEXT, &cli_brokers                                                     \
    }
/** "leat: ..." to stderr. */
void cli_error(const char *format, ...) LEAT_PRINTF(1, 2);
/** CLI_OK and the library's number, or CLI_USAGE after a message. NULL: none. */
int cli_compression_parse(const char *text, int *out);
/** The next character of a text that is not at its end; \n \t \r \0 \xHH and \ before any other are one. */
char cli_unescaped(const char **text);
/** CLI_OK, or CLI_USAGE after a message: \ before a letter or digit must be one of these. */
int cli_escapes_check(const char *option, const char *text) LEAT_NODISCARD;
/** False after a message that names the option and its range, in `unit` (" ms", or ""). */
bool cli_in_range(const char *option, uint64_t value, uint64_t least, uint64_t most,
                  const char *unit);
#define CLI_NONE UINT64_MAX /* a number that was not given */
/** The same for an optional number: a missing number becomes `otherwise`. So 0 and a missing number differ. */
bool cli_number(const char *option, uint64_t *value, uint64_t least, uint64_t most,
                uint64_t otherwise);
/** Print a help text when --help or -h is among the arguments. */
bool cli_wants_help(int argc, char **argv, const char *help);

/* ---- requests ---- */
struct cli_answer {
    leat_err rc;
    struct leat_error error;
    uint8_t *bytes; /* control body; free() */
    size_t count;
    bool again; /* of cli_call_patiently(): not to the first question */
};
/** Connects at the first use. A message tells the user about a long wait. */
leat_err cli_call(enum leat_kind kind, const struct leat_msg_writer *body,
                  struct cli_answer *out_answer);
/** cli_call(), repeated while the refusal is temporary, and the first question was less than half a minute ago: a
 * leader is being elected, a streamlet is moving, the asked server lags; for 10 s, with a message, while no server
 * listens at any address. The request must be one that may take effect twice. Ends at Ctrl-C. */
leat_err cli_call_patiently(enum leat_kind kind, const struct leat_msg_writer *body,
                            struct cli_answer *out_answer);
/** For a command that changes the cluster: where nothing names brokers, ask by the Unix socket of a server of
 * this machine, if there is one that this account may use. */
void cli_administer(void);
/** cli_call() about a stream's name alone. */
leat_err cli_name_call(enum leat_kind kind, const char *name, struct cli_answer *out_answer);
/** At most so long is waited for what passes; UINT64_MAX: as long as each call says. */
extern uint64_t cli_patience_us;
/** Print a refused call; returns the exit code for it. */
int cli_refused(const struct cli_answer *answer);
void cli_answer_fini(struct cli_answer *answer);
void cli_disconnect(void);
/** Ask the server for a stream, patiently; makes it when may_create and the server allows. */
int cli_stream_ensure(const char *name, bool may_create);
/** The settings that a stream has; a missing one is told. */
int cli_stream_settings(const char *name, struct leat_stream_settings *out);
/** The answer's rc and sentence say why not. */
int cli_stream_create(const char *name, const struct leat_stream_settings *settings,
                      struct cli_answer *out_answer);
const char *cli_durability_name(enum leat_durability level);
/** "1 streamlet of 2 logs, 3 copies, durability disk". */
enum { CLI_SETTINGS_BYTES = 128 };
const char *cli_settings_text(const struct leat_stream_settings *settings,
                              char text[CLI_SETTINGS_BYTES]);
int cli_durability_parse(const char *text, enum leat_durability *out);
struct cli_status {
    uint64_t uptime_ms, cpu_us, memory_budget, memory_used, disk_free, cores, appended_records,
        appended_bytes, fetched_records, fetched_bytes, connections;
    struct leat_msg_accounts accounts;
    char version[64];
};
int cli_status_get(struct cli_status *out_status);
/** Of the server at that address alone. */
int cli_status_of(const char *address, struct cli_status *out_status);

/* ---- output ---- */
/** Columns aligned; numbers right. rows: count * columns strings. */
void cli_table(const char *const *head, unsigned columns, char *const *rows, size_t count,
               const char *right);
/** A table's cell; free(), or cli_cells_free() for all of them. Never NULL. */
char *cli_cell(const char *format, ...) LEAT_PRINTF(1, 2);
void cli_cells_free(char **cells, size_t count);
void cli_json_string(FILE *out, const char *text, size_t bytes);
const char *cli_bytes_text(double bytes, char out[32]);
enum { CLI_TRAFFIC_BYTES = 160 };
/** "5 records, 1.2 KiB, 0.50 s, 10 records/s, 2.4 KiB/s": on the way and at the end in the same words. */
const char *cli_traffic_text(uint64_t records, uint64_t bytes, uint64_t us,
                             char out[CLI_TRAFFIC_BYTES]);
/** What makes a plural of an English noun: "" for 1, else "s". */
static inline const char *cli_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}
/** A line that is written over, on a terminal only. */
void cli_progress(const char *format, ...) LEAT_PRINTF(1, 2);
void cli_progress_end(void);
/** Has a write to standard output failed? Why is told at the end (main()). */
bool cli_output_failed(void);
extern int cli_output_errno;
bool cli_interrupted(void); /* SIGINT or SIGTERM came */
/** Once in a command, and before cli_readable_wait(). */
void cli_catch_signals(void);
/** Wait until a read from fd does not block; false: interrupted. */
bool cli_readable_wait(int fd);

#endif
