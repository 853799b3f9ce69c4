/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `leat`: each takes the arguments after its words, and returns an exit code (cli.h). */
#ifndef LEAT_TOOLS_LEAT_COMMANDS_H
#define LEAT_TOOLS_LEAT_COMMANDS_H

int leat_stream_main(int argc, char **argv);
int leat_streamlet_main(int argc, char **argv);
int leat_produce_main(int argc, char **argv);
int leat_consume_main(int argc, char **argv);
int leat_log_main(int argc, char **argv);
int leat_status_main(int argc, char **argv);
int leat_cluster_main(int argc, char **argv);
int leat_node_main(int argc, char **argv);

/* ---- of leat_stream_main() ---- */
int leat_stream_list(int argc, char **argv);
int leat_stream_describe(int argc, char **argv);
int leat_stream_rebalance(int argc, char **argv);
int leat_stream_trim(int argc, char **argv);

#endif
