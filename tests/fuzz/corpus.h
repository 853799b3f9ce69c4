/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the writers of seed corpora share. */
#ifndef LEAT_TESTS_FUZZ_CORPUS_H
#define LEAT_TESTS_FUZZ_CORPUS_H

#include "fuzz.h"

/** One seed of a target, in the folder that the program was started with. */
void corpus_file(const char *target, const char *name, const void *bytes, size_t count);

/* An input of pieces (fuzz.h), put together. */
struct corpus_pieces {
    size_t used;
    uint8_t bytes[20000];
};
void corpus_piece(struct corpus_pieces *pieces, uint8_t kind, const void *bytes, size_t count);

/* corpus_nodes.c */
void corpus_machine(void);
/* corpus_messages.c */
void corpus_node(void);
void corpus_hello(void);
void corpus_peer(void);
/* corpus_files.c */
void corpus_raft(void);
void corpus_catalogue(void);
void corpus_groups(void);

#endif
