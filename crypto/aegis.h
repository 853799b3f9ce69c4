/* SPDX-License-Identifier: Apache-2.0 */
/* AEGISMAC-128X2 of draft-irtf-cfrg-aegis-aead-18, section 8.3, with a tag of 128 bits.
 *
 * AEGIS-128X2 is two AEGIS-128L side by side, of eight blocks of 16 bytes each: 64 bytes of message go
 * in by one round of AES on each of the sixteen. That is what the instructions of a processor do best,
 * so there is a path for each kind of them, and one for processors without. All make the same tags.
 *
 * Thread: any; there is no state between calls.
 */
#ifndef LEAT_CRYPTO_AEGIS_H
#define LEAT_CRYPTO_AEGIS_H

#include "base/port.h"

enum { LEAT_AEGIS_KEY_BYTES = 16, LEAT_AEGIS_NONCE_BYTES = 16, LEAT_AEGIS_TAG_BYTES = 16 };

typedef void leat_aegis_tag_fn(const uint8_t key[LEAT_AEGIS_KEY_BYTES],
                               const uint8_t nonce[LEAT_AEGIS_NONCE_BYTES],
                               const struct leat_iov *iovs, unsigned iov_count,
                               uint8_t out_tag[LEAT_AEGIS_TAG_BYTES]);

struct leat_aegis_path {
    const char *name;
    leat_aegis_tag_fn *tag; /* NULL behind the last */
    bool usable;            /* by this processor */
};

enum { LEAT_AEGIS_PATHS_MAX = 4 };

/** Those that were built, the fastest first. The last one is usable everywhere. */
void leat_aegis_paths(struct leat_aegis_path out[LEAT_AEGIS_PATHS_MAX]);
/** The fastest that this processor can take. */
leat_aegis_tag_fn *leat_aegis_best(void);

#endif
