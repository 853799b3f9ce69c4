/* SPDX-License-Identifier: Apache-2.0 */
/* leat bench, and each of its benchmarks: takes the arguments after its words, returns an exit code
 * (tools/leat/cli.h). */
#ifndef LEAT_TOOLS_BENCH_BENCH_H
#define LEAT_TOOLS_BENCH_BENCH_H

int leat_bench_main(int argc, char **argv);

/* ---- of leat_bench_main() ---- */
int leat_bench_append(int argc, char **argv);
int leat_bench_pull(int argc, char **argv);
int leat_bench_recovery(int argc, char **argv);

#endif
