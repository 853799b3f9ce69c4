/* SPDX-License-Identifier: Apache-2.0 */
/* AEGISMAC-128X2 of draft-irtf-cfrg-aegis-aead-18, section 8.3, with a tag of 128 bits.
 *
 * AEGIS-128X2 is two AEGIS-128L side by side, of eight blocks of 16 bytes each: 64 bytes of message are absorbed by
 * one AES round on each of the sixteen blocks. Processors have instructions for AES rounds, so there is a path for
 * each kind of instruction, and a path without. All paths make the same tags.
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
    leat_aegis_tag_fn *tag; /* NULL after the last */
    bool usable;            /* by this processor */
};

enum { LEAT_AEGIS_PATHS_MAX = 4 };

/** The paths in this build, the fastest first. The last path is usable everywhere. */
void leat_aegis_paths(struct leat_aegis_path out[LEAT_AEGIS_PATHS_MAX]);
/** The fastest path that this processor supports. */
leat_aegis_tag_fn *leat_aegis_best(void);

#endif
