/* SPDX-License-Identifier: Apache-2.0 */
/* A key that both ends of a connection hold, and tags that prove it frame by frame.
 *
 * Each direction of a connection has a `struct leat_mac` of its own at either end: the sender's struct makes a tag
 * for each message, the receiver's struct checks the tag. Both number messages from 0, and a tag covers the message
 * and its number: an altered, missing, repeated or reordered message, or a message of another connection or
 * direction, is detected. Bytes are not encrypted. README.md has the construction.
 */
#ifndef LEAT_CRYPTO_MAC_H
#define LEAT_CRYPTO_MAC_H

#include "base/error.h"
#include "base/port.h"

enum {
    LEAT_KEY_BYTES = 32,   /* a shared secret */
    LEAT_NONCE_BYTES = 32, /* of each end, from the random port's secret(), for one connection */
    LEAT_TAG_BYTES = 16,
};
struct leat_key {
    uint8_t bytes[LEAT_KEY_BYTES];
};

struct leat_mac; /* opaque: one direction of one connection; one thread at a time */

/** The key of this direction is derived from `key`, the transcript (what both ends have said so far,
 * with a nonce of each) and the direction's label, at most 64 bytes. All are borrowed until return.
 * Errors: LEAT_E_NO_MEMORY. Thread: any. */
leat_err leat_mac_create(const struct leat_key *key, const void *transcript,
                         size_t transcript_bytes, const char *label,
                         struct leat_mac **out_mac) LEAT_NODISCARD;
/** Its key is wiped. NULL is allowed. */
void leat_mac_destroy(struct leat_mac **mac);
/** The next message's tag. Allocates: never. */
void leat_mac_tag(struct leat_mac *mac, const struct leat_iov *iovs, unsigned iov_count,
                  uint8_t out_tag[LEAT_TAG_BYTES]);
/** Is this the next message's tag? Takes the same time whatever differs. On false the connection has to
 * end: what comes next is not known. Allocates: never. */
bool leat_mac_check(struct leat_mac *mac, const void *bytes, size_t count,
                    const uint8_t tag[LEAT_TAG_BYTES]) LEAT_NODISCARD;
/** The message that was just checked was not taken, and will be shown to leat_mac_check() again. */
void leat_mac_again(struct leat_mac *mac);

#endif
