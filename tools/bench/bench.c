/* SPDX-License-Identifier: Apache-2.0 */
/* leat bench: which benchmark. */
#include "tools/bench/bench.h"
#include "tools/leat/cli.h"

#include "base/nearest.h"

#include <string.h>

static const char help[] =
    "Usage: leat bench append [OPTION...]\n"
    "       leat bench pull [OPTION...]\n"
    "       leat bench recovery [OPTION...]\n"
    "\n"
    "append and pull run producers or consumers, threads of the client library over TCP,\n"
    "against a running server. recovery starts its own cluster on this machine.\n"
    "Each command prints its own help: leat bench append --help.\n";

int leat_bench_main(int argc, char **argv)
{
    if (argc >= 1 && strcmp(argv[0], "append") == 0) return leat_bench_append(argc - 1, argv + 1);
    if (argc >= 1 && strcmp(argv[0], "pull") == 0) return leat_bench_pull(argc - 1, argv + 1);
    if (argc >= 1 && strcmp(argv[0], "recovery") == 0)
        return leat_bench_recovery(argc - 1, argv + 1);
    if (cli_wants_help(argc, argv, help)) return CLI_OK;
    static const char *const verbs[] = {"append", "pull", "recovery"};
    const char *nearest = argc ? leat_nearest_word(argv[0], verbs, 3) : NULL;
    if (nearest)
        cli_error("no 'bench %s'; did you mean 'bench %s'?", argv[0], nearest);
    else if (argc && argv[0][0] != '-')
        cli_error("no 'bench %s'; see leat bench --help", argv[0]);
    else
        fputs(help, stderr);
    return CLI_USAGE;
}
