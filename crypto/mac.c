/* Keys by HKDF-SHA-256, tags by AES-128-GMAC, both of OpenSSL's libcrypto. See mac.h and README.md. */
#include "crypto/mac.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"

enum { AES_KEY_BYTES = 16, IV_BYTES = 12, NUMBER_AT = 4, LABEL_BYTES_MAX = 64 };

struct leat_mac {
    EVP_CIPHER_CTX *cipher; /* holds the key */
    OSSL_PARAM ask_tag[2];  /* writes `tag` */
    uint64_t number;        /* of the next message */
    uint8_t tag[LEAT_TAG_BYTES];
};

static bool key_derive(const struct leat_key *key, const void *transcript, size_t transcript_bytes,
                       const char *label, uint8_t out[AES_KEY_BYTES])
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
    bool derived = ctx && EVP_KDF_derive(ctx, out, AES_KEY_BYTES, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    OPENSSL_cleanse(secret, sizeof secret);
    return derived;
}

leat_err leat_mac_create(const struct leat_key *key, const void *transcript,
                         size_t transcript_bytes, const char *label, struct leat_mac **out_mac)
{
    LEAT_ASSERT_CMP(strlen(label), <=, (size_t)LABEL_BYTES_MAX);
    uint8_t derived[AES_KEY_BYTES];
    struct leat_mac *mac = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *mac);
    if (!mac) return LEAT_E_NO_MEMORY;
    mac->ask_tag[0] =
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, mac->tag, sizeof mac->tag);
    mac->ask_tag[1] = OSSL_PARAM_construct_end();
    mac->cipher = EVP_CIPHER_CTX_new();
    bool made = mac->cipher && key_derive(key, transcript, transcript_bytes, label, derived) &&
                EVP_EncryptInit_ex2(mac->cipher, EVP_aes_128_gcm(), derived, NULL, NULL) == 1;
    OPENSSL_cleanse(derived, sizeof derived);
    if (!made) { /* libcrypto refuses what is asked for here only without memory */
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
    EVP_CIPHER_CTX_free(mac->cipher); /* wipes it */
    leat_mem_free(mac);
}

/* Into mac->tag. GMAC is GCM that encrypts nothing: all is additional data. */
static void tag_make(struct leat_mac *mac, const struct leat_iov *iovs, unsigned iov_count)
{
    uint8_t iv[IV_BYTES] = {0};
    int written = 0;
    leat_put_le64(iv + NUMBER_AT, mac->number++);
    bool made = EVP_EncryptInit_ex2(mac->cipher, NULL, NULL, iv, NULL) == 1;
    for (unsigned i = 0; made && i < iov_count; i++) {
        LEAT_ASSERT_CMP(iovs[i].bytes, <=, (size_t)INT32_MAX);
        if (iovs[i].bytes == 0) continue;
        made =
            EVP_EncryptUpdate(mac->cipher, NULL, &written, iovs[i].base, (int)iovs[i].bytes) == 1;
    }
    uint8_t none[LEAT_TAG_BYTES];
    made = made && EVP_EncryptFinal_ex(mac->cipher, none, &written) == 1 &&
           EVP_CIPHER_CTX_get_params(mac->cipher, mac->ask_tag) == 1;
    LEAT_ASSERT(made); /* none of these allocates, or depends on bytes from outside */
}

void leat_mac_tag(struct leat_mac *mac, const struct leat_iov *iovs, unsigned iov_count,
                  uint8_t out_tag[LEAT_TAG_BYTES])
{
    tag_make(mac, iovs, iov_count);
    memcpy(out_tag, mac->tag, LEAT_TAG_BYTES);
}

bool leat_mac_check(struct leat_mac *mac, const void *bytes, size_t count,
                    const uint8_t tag[LEAT_TAG_BYTES])
{
    tag_make(mac, &(struct leat_iov){bytes, count}, 1);
    return CRYPTO_memcmp(mac->tag, tag, LEAT_TAG_BYTES) == 0;
}

void leat_mac_again(struct leat_mac *mac)
{
    LEAT_ASSERT(mac->number > 0);
    mac->number--;
}
