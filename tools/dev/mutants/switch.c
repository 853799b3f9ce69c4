/* SPDX-License-Identifier: Apache-2.0 */
/* What switch.h declares: linked into every program of a build with mutants.
 *
 * LEAT_MUTANT=N chooses one, LEAT_MUTANT=N,M two at a time. LEAT_MUTANTS_SEEN=FILE notes which places a run came to:
 * one byte for each mutant. By system calls: tests stand between a program and the functions of the C library. */
#include "switch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef LEAT_MUTANTS_MAX /* the highest number, and one more: build.py gives it */
#error "compile with -DLEAT_MUTANTS_MAX=N"
#endif

unsigned leat_mutant_chosen, leat_mutant_beside;
unsigned char *leat_mutants_seen;

/* The first of all constructors: those of a program's own may come to mutants. */
static __attribute__((constructor(101))) void leat_mutants_begin(void)
{
    const char *numbers = getenv("LEAT_MUTANT"), *seen = getenv("LEAT_MUTANTS_SEEN");
    char *end = NULL;
    if (numbers != NULL) leat_mutant_chosen = (unsigned)strtoul(numbers, &end, 10);
    if (end != NULL && *end == ',') leat_mutant_beside = (unsigned)strtoul(end + 1, &end, 10);
    if (end != NULL && *end != '\0') abort(); /* two are as many as there is room for */
    if (seen == NULL) return;
    long file = syscall(SYS_openat, AT_FDCWD, seen, O_RDWR | O_CREAT, 0600);
    if (file < 0 || syscall(SYS_ftruncate, file, LEAT_MUTANTS_MAX) != 0) return;
    long bytes =
        syscall(SYS_mmap, NULL, LEAT_MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes != -1) leat_mutants_seen = (unsigned char *)bytes;
    syscall(SYS_close, file);
}
