/* SPDX-License-Identifier: Apache-2.0 */
/* Tags by AEGISMAC-128X2, with keys of derive.c. See mac.h and README.md. */
#include "crypto/mac.h"

#include <string.h>

#include <openssl/crypto.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "crypto/aegis.h"
#include "crypto/derive.h"

enum { LABEL_BYTES_MAX = 64 };
_Static_assert((int)LEAT_AEGIS_TAG_BYTES == (int)LEAT_TAG_BYTES, "a tag is a tag");

struct leat_mac {
    leat_aegis_tag_fn *tag; /* by what this processor has */
    uint64_t number;        /* of the next message */
    uint8_t key[LEAT_AEGIS_KEY_BYTES];
};

leat_err leat_mac_create(const struct leat_key *key, const void *transcript,
                         size_t transcript_bytes, const char *label, struct leat_mac **out_mac)
{
    LEAT_ASSERT_CMP(strlen(label), <=, (size_t)LABEL_BYTES_MAX);
    struct leat_mac *mac = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *mac);
    if (!mac) return LEAT_E_NO_MEMORY;
    mac->tag = leat_aegis_best();
    /* libcrypto refuses what is asked for here only without memory */
    if (!leat_key_derive(key, transcript, transcript_bytes, label, mac->key)) {
        leat_mac_destroy(&mac);
        return LEAT_E_NO_MEMORY;
    }
    *out_mac = mac;
    return LEAT_OK;
}

void leat_mac_destroy(struct leat_mac **mac_at)
{
    struct leat_mac *mac = *mac_at;
    *mac_at = NULL;
    if (!mac) return;
    OPENSSL_cleanse(mac->key, sizeof mac->key);
    leat_mem_free(mac);
}

void leat_mac_tag(struct leat_mac *mac, const struct leat_iov *iovs, unsigned iov_count,
                  uint8_t out_tag[LEAT_TAG_BYTES])
{
    uint8_t nonce[LEAT_AEGIS_NONCE_BYTES] = {0};
    leat_put_le64(nonce, mac->number++);
    mac->tag(mac->key, nonce, iovs, iov_count, out_tag);
}

bool leat_mac_check(struct leat_mac *mac, const void *bytes, size_t count,
                    const uint8_t tag[LEAT_TAG_BYTES])
{
    uint8_t right[LEAT_TAG_BYTES];
    leat_mac_tag(mac, &(struct leat_iov){bytes, count}, 1, right);
    return CRYPTO_memcmp(right, tag, LEAT_TAG_BYTES) == 0;
}

void leat_mac_again(struct leat_mac *mac)
{
    LEAT_ASSERT(mac->number > 0);
    mac->number--;
}
