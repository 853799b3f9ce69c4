/* SPDX-License-Identifier: Apache-2.0 */
/* Copying blocks that change processors; clearing memory past the caches. */
#ifndef LEAT_BASE_COPY_H
#define LEAT_BASE_COPY_H

#include <stddef.h>

/**
 * memcpy() for a block of several cache lines whose memory another processor has read or written
 * before: a buffer that goes round between threads, memory that is used again.
 *
 * An ordinary store fetches the line from its present cache, although all of the line is about to be overwritten;
 * here this takes as long as 100 bytes of copying. The processor's string instruction knows that whole lines are
 * written and fetches none. 1 MiB that a thread on the other processor had read: 104 us by memcpy(), 29 by this
 * function, and the bytes are in the cache afterwards (not so after stores past the cache). Nothing is lost if the
 * lines are in this cache: 20 and 17 us.
 *
 * Below LEAT_COPY_BLOCK_BYTES_MIN, and on processors without that instruction in its fast form (ERMS;
 * Intel, Optimization Reference Manual, 3.7.6), it is memcpy(). The blocks do not overlap.
 *
 * Thread: any.  Blocks: never.  Allocates: never.
 */
void leat_copy_block(void *to, const void *from, size_t bytes);

/**
 * memset() to zero for memory that is not used soon: the stores go past the caches, which keep their useful lines,
 * and no line is fetched before it is overwritten. 8 MiB of memory that no cache holds: 34 ms for a GiB by memset(),
 * 24 by this function. Complete on return, for other processors and processes as well. Equal to memset() for a block
 * that is not of whole cache lines, and on other processors than x86-64.
 *
 * Thread: any.  Blocks: never.  Allocates: never.
 */
void leat_zero_block(void *at, size_t bytes);

/* Less is not worth the instruction's start, some 30 cycles. */
enum { LEAT_COPY_BLOCK_BYTES_MIN = 1024 };

#endif
