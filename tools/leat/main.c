/* SPDX-License-Identifier: Apache-2.0 */
/* The `leat` program: which noun is meant. */
#include "base/nearest.h"
#include "tools/bench/bench.h"
#include "tools/leat/cli.h"
#include "tools/leat/commands.h"

#include <errno.h>
#include <string.h>

static const char help[] =
    "Usage: leat COMMAND [OPTION...]\n"
    "\n"
    "  leat stream create NAME     create a stream\n"
    "  leat stream list            list all streams\n"
    "  leat stream describe NAME   print streamlets, logs, groups, segments, offsets\n"
    "  leat stream delete NAME     delete a stream with all its records\n"
    "  leat stream trim NAME ...   delete the records of a log before an offset\n"
    "  leat stream rebalance NAME  spread a stream evenly over the nodes\n"
    "  leat streamlet move ...     move a streamlet to another node\n"
    "  leat produce NAME [FILE...] append lines, from stdin by default\n"
    "  leat consume NAME           print records\n"
    "  leat log recover NAME ...   give up the missing or damaged records of a log\n"
    "  leat status                 print the state of a server\n"
    "  leat cluster status         print the nodes, the leader, and what each node has\n"
    "  leat node drain NAME        take a node out of use (undrain: back into use)\n"
    "  leat node add-voter NAME    make a node a voter of the coordinators\n"
    "  leat node replace NAME      let a voter whose disk is lost start again, empty\n"
    "  leat bench append|pull|recovery  measure\n"
    "\n"
    "  -b, --brokers HOST:PORT,... servers (default $LEAT_BROKERS, else 127.0.0.1:7700),\n"
    "                              or unix:DATA/leatd.sock\n"
    "      --help                  of each command; --version\n"
    "\n"
    "Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no server answers;\n"
    "4 consume: the end of a log is missing.\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} nouns[] = {
    {"stream", leat_stream_main},       {"produce", leat_produce_main},
    {"consume", leat_consume_main},     {"log", leat_log_main},
    {"status", leat_status_main},       {"cluster", leat_cluster_main},
    {"node", leat_node_main},           {"bench", leat_bench_main},
    {"streamlet", leat_streamlet_main},
};
enum { NOUNS = sizeof nouns / sizeof nouns[0] };

/* What was printed and did not get out is a failure, whatever was printed. */
static int written(int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    int why = errno ? errno : cli_output_errno;
    cli_error("standard output can't be written%s%s", why ? ": " : "", why ? strerror(why) : "");
    return code == CLI_OK ? CLI_FAILED : code;
}

int main(int argc, char **argv)
{
    /* -b may come before the noun too. */
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
        const char *word = argv[at];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            fputs(help, stdout);
            return CLI_OK;
        }
        if (strcmp(word, "--version") == 0) {
            printf("leat %s\n", leat_version());
            return CLI_OK;
        }
        if (strncmp(word, "--brokers=", 10) == 0) {
            cli_brokers = word + 10;
            at++;
        } else if (strcmp(word, "-b") == 0 || strcmp(word, "--brokers") == 0) {
            if (at + 1 == argc) {
                cli_error("--brokers wants a value");
                return CLI_USAGE;
            }
            cli_brokers = argv[at + 1];
            at += 2;
        } else if (strncmp(word, "-b", 2) == 0 && word[2]) {
            cli_brokers = word + 2;
            at++;
        } else {
            cli_error("no option %s here; see leat --help", word);
            return CLI_USAGE;
        }
    }
    if (at >= argc) {
        fputs(help, stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[at], "help") == 0 && at + 1 == argc) {
        fputs(help, stdout);
        return written(CLI_OK);
    }
    for (size_t i = 0; i < NOUNS; i++) {
        if (strcmp(argv[at], nouns[i].name) != 0) continue;
        int code = nouns[i].run(argc - at - 1, argv + at + 1);
        cli_disconnect();
        return written(code);
    }
    const char *names[NOUNS];
    for (size_t i = 0; i < NOUNS; i++)
        names[i] = nouns[i].name;
    const char *nearest = leat_nearest_word(argv[at], names, NOUNS);
    if (nearest)
        cli_error("no command '%s'; did you mean '%s'?", argv[at], nearest);
    else
        cli_error("no command '%s'; see leat --help", argv[at]);
    return CLI_USAGE;
}
