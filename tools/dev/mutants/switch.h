/* SPDX-License-Identifier: Apache-2.0 */
/* Which mutant runs: included before every source of a build with mutants (tools/mutate), and nowhere else. It
 * includes nothing: a test may define a function with the name of a C library function. */
#ifndef LEAT_TOOLS_DEV_MUTANTS_SWITCH_H
#define LEAT_TOOLS_DEV_MUTANTS_SWITCH_H

extern unsigned leat_mutant_chosen, leat_mutant_beside;
extern unsigned char *leat_mutants_seen;

#ifdef LEAT_MUTANT_FIXED /* a single mutant, to see the compiler's output */
static inline int leat_mutant(unsigned number)
{
    return number == LEAT_MUTANT_FIXED;
}
#else
static inline int leat_mutant(unsigned number)
{
    if (__builtin_expect(leat_mutants_seen != 0, 0)) leat_mutants_seen[number] = 1;
    return __builtin_expect(leat_mutant_chosen == number || leat_mutant_beside == number, 0);
}
#endif

#endif
