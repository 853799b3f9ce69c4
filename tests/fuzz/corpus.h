/* What the writers of seed corpora share. */
#ifndef LEAT_TESTS_FUZZ_CORPUS_H
#define LEAT_TESTS_FUZZ_CORPUS_H

#include "fuzz.h"

/** One seed of a target, in the folder that the program was started with. */
void corpus_file(const char *target, const char *name, const void *bytes, size_t count);
/* corpus_nodes.c */
void corpus_machine(void);

#endif
