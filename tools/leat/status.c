/* SPDX-License-Identifier: Apache-2.0 */
/* leat status, leat log recover */
#include "tools/leat/cluster.h"
#include "tools/leat/commands.h"

#include <inttypes.h>
#include <string.h>

static const char status_help[] =
    "Usage: leat status [--json]\n"
    "\n"
    "Prints the server's version, age, load and memory, how much was appended and fetched,\n"
    "what is wrong with the server (a full disk), and its logs that take no appends, lack\n"
    "records, or have bytes that a start has passed over.\n"
    "\n"
    "  --json  print JSON\n"
    "  -b, --brokers HOST:PORT,...\n"
    "\n"
    "Exit codes: 0 done; 1 something is wrong, or the server refused; 2 wrong usage; 3 no\n"
    "server answers.\n";

static const char log_help[] =
    "Usage: leat log recover NAME [--streamlet S] [--log Q] [--accept-loss]\n"
    "\n"
    "Gives up the missing or damaged records of a log. If they are at the end of the log, the\n"
    "log takes appends again; the next offset is higher than all offsets that were in use. If\n"
    "the end of the log is whole, gives up missing records at the beginning, so that the log\n"
    "begins after them, and known damaged or missing records in the middle (leat cluster\n"
    "status), so that readers pass over them. Bytes that a start has passed over (a note of\n"
    "leat cluster status) then count as seen, and nothing is given up for them.\n"
    "\n"
    "  --streamlet S   default 0\n"
    "  --log Q         default 0\n"
    "  --accept-loss   acked records may be lost. Without this option nothing is given up: the\n"
    "                  command prints what would be kept and what is missing (exit code 2)\n"
    "  -b, --brokers HOST:PORT,...\n";

enum { STATUS_LOGS_MAX = 10 /* that are named */ };

/* The server's report about itself and its logs; empty, if the server does not answer this request. Views into an
 * answer that is kept to the end. */
static struct leat_msg_node_report report_get(void)
{
    static struct cli_answer answer;
    uint8_t bytes[8];
    struct leat_msg_writer body;
    struct leat_msg_reader reader;
    struct leat_msg_node_report report = {0};
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_report_ask_write(&body, &(struct leat_msg_report_ask){false});
    if (cli_call(LEAT_KIND_NODE_REPORT, &body, &answer)) return report;
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    leat_msg_node_report_read(&reader, &report);
    return reader.failed ? (struct leat_msg_node_report){0} : report;
}

static uint32_t named(uint32_t count)
{
    return count < STATUS_LOGS_MAX ? count : STATUS_LOGS_MAX;
}

static void print_troubled(const struct cli_status *status,
                           const struct leat_msg_node_report *report)
{
    uint64_t all = status->accounts.logs_troubled;
    uint32_t count = named(report->troubled_count);
    struct leat_msg_reader reader = report->troubled;
    if (report->trouble.bytes > 0)
        printf("trouble      %.*s\n", (int)report->trouble.bytes, report->trouble.text);
    if (all == 0) return;
    printf("trouble      %" PRIu64 " log%s of this node take%s no appends or lack%s records%s\n",
           all, cli_s(all), all == 1 ? "s" : "", all == 1 ? "s" : "",
           count ? ":" : ": leat cluster status names them");
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_recovery_row row;
        leat_msg_recovery_row_read(&reader, &row);
        if (reader.failed) return;
        printf("             stream %.*s streamlet %" PRIu64 " log %" PRIu64 ": %.*s\n",
               (int)row.stream.bytes, row.stream.text, row.streamlet, row.log, (int)row.why.bytes,
               row.why.text);
    }
    if (count && all > count) printf("             and %" PRIu64 " more\n", all - count);
}

static void print_passed(const struct leat_msg_node_report *report)
{
    uint64_t all = report->logs_passed;
    uint32_t count = named(report->passed_count);
    struct leat_msg_reader reader = report->passed;
    if (all == 0) return;
    printf("note         a start has passed over bytes behind the end%s of %" PRIu64
           " log%s of this node%s\n",
           cli_s(all), all, cli_s(all), count ? ":" : ": leat cluster status names them");
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_passed row;
        leat_msg_passed_read(&reader, &row);
        if (reader.failed) return;
        printf("             stream %.*s streamlet %" PRIu64 " log %" PRIu64 ": ",
               (int)row.stream.bytes, row.stream.text, row.streamlet, row.log);
        cli_passed_print(&row);
    }
    if (count && all > count) printf("             and %" PRIu64 " more\n", all - count);
}

static void print_json(const struct cli_status *s, const struct leat_msg_node_report *report)
{
    printf("{\"version\":");
    cli_json_string(stdout, s->version, strlen(s->version));
    printf(",\"uptime_ms\":%" PRIu64 ",\"cpu_us\":%" PRIu64 ",\"cores\":%" PRIu64
           ",\"memory_budget\":%" PRIu64 ",\"memory_used\":%" PRIu64 ",\"disk_free\":%" PRIu64
           ",\"appended_records\":%" PRIu64 ",\"appended_bytes\":%" PRIu64
           ",\"fetched_records\":%" PRIu64 ",\"fetched_bytes\":%" PRIu64 ",\"connections\":%" PRIu64
           ",\"own_buffer_bytes\":%" PRIu64 ",\"copy_buffer_bytes\":%" PRIu64
           ",\"logs_in_trouble\":%" PRIu64 ",\"troubled_logs\":",
           s->uptime_ms, s->cpu_us, s->cores, s->memory_budget, s->memory_used, s->disk_free,
           s->appended_records, s->appended_bytes, s->fetched_records, s->fetched_bytes,
           s->connections, s->accounts.own_buffer_bytes, s->accounts.copy_buffer_bytes,
           s->accounts.logs_troubled);
    cli_cluster_logs_json(report->troubled, named(report->troubled_count));
    printf(",\"logs_passed_over\":%" PRIu64 ",\"passed_over\":", report->logs_passed);
    cli_passed_json(report->passed, named(report->passed_count));
    printf(",\"trouble\":");
    cli_json_string(stdout, report->trouble.text, report->trouble.bytes);
    printf(",\"pool_in_file\":%s}\n", s->accounts.pool_in_file ? "true" : "false");
}

int leat_status_main(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, status_help)) return CLI_OK;
    bool json = false;
    const struct cli_option options[] = {CLI_COMMON, {"json", 0, CLI_FLAG, &json}};
    int n = cli_parse(argc, argv, options, 2);
    if (n != 0) {
        if (n > 0) cli_error("status takes no operands");
        return CLI_USAGE;
    }
    struct cli_status s = {0};
    int code = cli_status_get(&s);
    if (code) return code;
    struct leat_msg_node_report report = report_get();
    bool wrong = s.accounts.logs_troubled + report.logs_passed + report.trouble.bytes > 0;
    code = wrong ? CLI_FAILED : CLI_OK;
    if (json) {
        print_json(&s, &report);
        return code;
    }
    char a[32], b[32];
    printf("version      %s\n", s.version);
    printf("up           %.1f s, CPU %.2f s on %" PRIu64 " core%s\n", (double)s.uptime_ms / 1e3,
           (double)s.cpu_us / 1e6, s.cores, cli_s(s.cores));
    printf("memory       %s of %s\n", cli_bytes_text((double)s.memory_used, a),
           cli_bytes_text((double)s.memory_budget, b));
    if (s.accounts.pool_in_file)
        printf("             of segments in a file on disk, where appends are slower: \"Memory in "
               "a file\" in "
               "docs/operations.md\n");
    printf("disk free    %s\n", cli_bytes_text((double)s.disk_free, a));
    printf("appended     %" PRIu64 " record%s, %s\n", s.appended_records, cli_s(s.appended_records),
           cli_bytes_text((double)s.appended_bytes, a));
    printf("fetched      %" PRIu64 " record%s, %s\n", s.fetched_records, cli_s(s.fetched_records),
           cli_bytes_text((double)s.fetched_bytes, a));
    printf("connections  %" PRIu64 "\n", s.connections);
    print_troubled(&s, &report);
    print_passed(&report);
    return code;
}

/* Without it nothing is given up. */
static leat_err recover_call(const char *name, uint64_t streamlet, uint64_t log, bool accept_loss,
                             struct cli_answer *out_answer)
{
    uint8_t bytes[512];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    struct leat_msg_recover recover = {
        .stream = {name, (uint32_t)strnlen(name, 400)},
        .streamlet = (uint32_t)streamlet,
        .log = (uint32_t)log,
        .accept_loss = accept_loss,
    };
    leat_msg_recover_write(&body, &recover);
    return cli_call(LEAT_KIND_LOG_RECOVER, &body, out_answer);
}

static int recover_ask(const char *name, uint64_t streamlet, uint64_t log)
{
    struct cli_answer answer;
    if (!recover_call(name, streamlet, log, false, &answer)) {
        cli_answer_fini(&answer);
        return CLI_OK;
    }
    int code = cli_refused(&answer);
    if (answer.rc != LEAT_E_LOG_INCOMPLETE && answer.rc != LEAT_E_DAMAGED) return code;
    if (strcmp(name, "leat.sets") == 0)
        cli_error(
            "leat.sets holds what consumer groups have committed: those of which the last commit "
            "is among what is given up read records again, or begin anew");
    cli_error("what nobody has read since the server's start, nor its scrub, may be damaged, too. "
              "Records that were acknowledged may be lost by giving that up; if so: say "
              "--accept-loss");
    return CLI_USAGE;
}

/* If the log is complete at its end the server tells where the log begins; consumers skip the offsets that the server
 * told before. */
static int recover_accept(const char *name, uint64_t streamlet, uint64_t log)
{
    static const char mark[] = "given up: ";
    struct cli_answer asked, answer;
    struct leat_msg_reader reader;
    struct leat_msg_recovered recovered;
    bool between = recover_call(name, streamlet, log, false, &asked) == LEAT_E_DAMAGED;
    const char *what = between ? strstr(asked.error.text, mark) : NULL;
    const char *seen = between && !what ? strstr(asked.error.text, "seen: ") : NULL;
    if (recover_call(name, streamlet, log, true, &answer)) return cli_refused(&answer);
    leat_msg_reader_init(&reader, answer.bytes, answer.count);
    leat_msg_recovered_read(&reader, &recovered);
    cli_answer_fini(&answer);
    if (seen) {
        printf("stream %s streamlet %" PRIu64 " log %" PRIu64 ": %s\n", name, streamlet, log, seen);
        return CLI_OK;
    }
    printf("loss accepted: stream %s streamlet %" PRIu64 " log %" PRIu64, name, streamlet, log);
    if (what)
        printf(": readers pass over what can't be read (%s); it begins at offset %" PRIu64 "\n",
               what + sizeof mark - 1, recovered.next_offset);
    else
        printf(" goes on at offset %" PRIu64 "\n", recovered.next_offset);
    return CLI_OK;
}

static int recover(int argc, char **argv)
{
    uint64_t streamlet = 0, log = 0;
    bool accept_loss = false;
    const struct cli_option options[] = {
        CLI_COMMON,
        {"streamlet", 0, CLI_U64, &streamlet},
        {"log", 0, CLI_U64, &log},
        {"accept-loss", 0, CLI_FLAG, &accept_loss},
    };
    int n = cli_parse(argc, argv, options, sizeof options / sizeof options[0]);
    if (n != 1) {
        if (n >= 0) cli_error("log recover wants one stream's NAME");
        return CLI_USAGE;
    }
    if (streamlet >= LEAT_STREAMLETS_MAX || log >= LEAT_LOGS_MAX) {
        cli_error("streamlets are 0 to %d, logs 0 to %d", LEAT_STREAMLETS_MAX - 1,
                  LEAT_LOGS_MAX - 1);
        return CLI_USAGE;
    }
    cli_administer();
    /* the asked node knows the stream when it answers */
    int code = cli_stream_ensure(argv[0], false);
    if (code) return code;
    return accept_loss ? recover_accept(argv[0], streamlet, log)
                       : recover_ask(argv[0], streamlet, log);
}

int leat_log_main(int argc, char **argv)
{
    if (cli_wants_help(argc, argv, log_help)) return CLI_OK;
    if (argc >= 1 && strcmp(argv[0], "recover") == 0) return recover(argc - 1, argv + 1);
    if (argc >= 1 && argv[0][0] != '-')
        cli_error("no 'log %s'; did you mean 'log recover'?", argv[0]);
    else
        fputs(log_help, stderr);
    return CLI_USAGE;
}
