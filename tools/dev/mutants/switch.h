/* SPDX-License-Identifier: Apache-2.0 */
/* Which mutant runs: included before every source of a build with mutants (tools/mutate), and nowhere else.
 *
 * LEAT_MUTANT=N chooses one, LEAT_MUTANT=N,M two at a time. LEAT_MUTANTS_SEEN=FILE notes which places a run came to:
 * one byte for each mutant. By system calls: tests stand between a program and the functions of the C library. */
#ifndef LEAT_TOOLS_DEV_MUTANTS_SWITCH_H
#define LEAT_TOOLS_DEV_MUTANTS_SWITCH_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LEAT_MUTANTS_MAX = 1 << 18 };

__attribute__((weak)) unsigned leat_mutant_chosen, leat_mutant_beside;
__attribute__((weak)) unsigned char *leat_mutants_seen;

#ifdef LEAT_MUTANT_FIXED /* one of them alone, to see what the compiler makes of it */
static inline int leat_mutant(unsigned number)
{
    return number == LEAT_MUTANT_FIXED;
}
#else
static inline int leat_mutant(unsigned number)
{
    if (__builtin_expect(leat_mutants_seen != NULL, 0)) leat_mutants_seen[number] = 1;
    return __builtin_expect(leat_mutant_chosen == number || leat_mutant_beside == number, 0);
}

#endif

static __attribute__((constructor, unused)) void leat_mutants_begin(void)
{
    const char *numbers = getenv("LEAT_MUTANT"), *seen = getenv("LEAT_MUTANTS_SEEN");
    char *end = NULL;
    if (numbers != NULL) leat_mutant_chosen = (unsigned)strtoul(numbers, &end, 10);
    if (end != NULL && *end == ',') leat_mutant_beside = (unsigned)strtoul(end + 1, &end, 10);
    if (end != NULL && *end != '\0') abort(); /* two are as many as there is room for */
    if (seen == NULL || leat_mutants_seen != NULL) return;
    long file = syscall(SYS_openat, AT_FDCWD, seen, O_RDWR | O_CREAT, 0600);
    if (file < 0 || syscall(SYS_ftruncate, file, LEAT_MUTANTS_MAX) != 0) return;
    long bytes =
        syscall(SYS_mmap, NULL, LEAT_MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes != -1) leat_mutants_seen = (unsigned char *)bytes;
    syscall(SYS_close, file);
}

#endif
