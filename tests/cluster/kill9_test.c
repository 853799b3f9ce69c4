/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 of a real leatd at random moments under load. Nothing that was acked may be missing,
 * doubled or moved, in either durability; the producers go on by themselves.
 *
 *   kill9_test LEATD LEAT [TRIALS [SEED]]
 *
 * A kill counts only when unanswered appends were there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cluster/load.h"

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: kill9_test LEATD LEAT [TRIALS [SEED]]\n");
        return 2;
    }
    struct server server = {.leatd = argv[1], .leat = argv[2]};
    unsigned trials = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 100, counted = 0;
    uint64_t state = argc > 4 ? strtoull(argv[4], NULL, 10) : now_us();
    printf("seed %llu\n", (unsigned long long)state);
    snprintf(server.data, sizeof server.data, "/tmp/leat-kill9-XXXXXX");
    if (!mkdtemp(server.data)) fail("no directory");
    address_choose(server.address);
    server_start(&server);
    static const char *const streams[] = {"on-disk", "in-memory"};
    const char *const create[][11] = {
        {"stream", "create", "on-disk", "--streamlets", "2", "--logs", "2", "--durability", "disk",
         NULL},
        {"stream", "create", "in-memory", "--streamlets", "2", "--logs", "2", "--durability",
         "memory", NULL},
    };
    for (unsigned i = 0; i < 2; i++)
        server_leat(&server, create[i]);
    struct load *load = load_start(&server, streams, 2);
    while (counted < trials) {
        uint64_t open = load_wait(load, 1 + random_next(&state) % 3000);
        server_kill(&server);
        counted += open > 0;
        server_start(&server);
    }
    load_finish(load);
    load_verify(load);
    server_stop(&server);
    /* What an orderly stop wrote is the same. */
    server_start(&server);
    load_verify(load);
    server_stop(&server);
    load_destroy(&load);
    printf("%u kills with unanswered appends\n", counted);
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", server.data);
    return system(command) == 0 ? 0 : 1;
}
