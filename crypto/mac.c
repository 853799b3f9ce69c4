/* SPDX-License-Identifier: Apache-2.0 */
/* Keys by HKDF-SHA-256 of OpenSSL's libcrypto, tags by AEGISMAC-128X2. See mac.h and README.md. */
#include "crypto/mac.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "crypto/aegis.h"

enum { LABEL_BYTES_MAX = 64 };
_Static_assert((int)LEAT_AEGIS_TAG_BYTES == (int)LEAT_TAG_BYTES, "a tag is a tag");

struct leat_mac {
    leat_aegis_tag_fn *tag; /* by what this processor has */
    uint64_t number;        /* of the next message */
    uint8_t key[LEAT_AEGIS_KEY_BYTES];
};

static bool key_derive(const struct leat_key *key, const void *transcript, size_t transcript_bytes,
                       const char *label, uint8_t out[LEAT_AEGIS_KEY_BYTES])
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    /* OSSL_PARAM takes what it reads by pointers that are not const. */
    uint8_t secret[LEAT_KEY_BYTES];
    memcpy(secret, key->bytes, sizeof secret);
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret, sizeof secret),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)(uintptr_t)transcript,
                                          transcript_bytes),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)label,
                                          strlen(label)),
        OSSL_PARAM_construct_end(),
    };
    bool derived = ctx && EVP_KDF_derive(ctx, out, LEAT_AEGIS_KEY_BYTES, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    OPENSSL_cleanse(secret, sizeof secret);
    return derived;
}

leat_err leat_mac_create(const struct leat_key *key, const void *transcript,
                         size_t transcript_bytes, const char *label, struct leat_mac **out_mac)
{
    LEAT_ASSERT_CMP(strlen(label), <=, (size_t)LABEL_BYTES_MAX);
    struct leat_mac *mac = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *mac);
    if (!mac) return LEAT_E_NO_MEMORY;
    mac->tag = leat_aegis_best();
    /* libcrypto refuses what is asked for here only without memory */
    if (!key_derive(key, transcript, transcript_bytes, label, mac->key)) {
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
