/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of one address or another to a home of rig.h: what each of them takes. */
#ifndef LEAT_TESTS_GROUPS_SHARES_RIG_H
#define LEAT_TESTS_GROUPS_SHARES_RIG_H

#include "classic_rig.h"

enum { HONEST = 1, HOSTILE = 2, GROUPS_MAX = 1100 };

/** "WORD-N", until the next call. */
const char *name(const char *word, unsigned n);
/** Commit from outside to one log of stream 7, with so many bytes of metadata. */
leat_err commit_as(struct home *home, uint64_t address, const char *group, uint32_t log,
                   uint32_t metadata_bytes);
/** Whether anything is. */
bool committed(struct home *home, const char *group, uint32_t log);
/** Commits to invented groups until one is refused; how many were taken. */
unsigned commits_until_refused(struct home *home, uint64_t address, const char *word,
                               uint32_t metadata_bytes);

#endif
