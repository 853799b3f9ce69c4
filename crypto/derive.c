/* SPDX-License-Identifier: Apache-2.0 */
/* Keys by HKDF-SHA-256 of OpenSSL's libcrypto. */
#include "crypto/derive.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

bool leat_key_derive(const struct leat_key *key, const void *transcript, size_t transcript_bytes,
                     const char *label, uint8_t out[LEAT_AEGIS_KEY_BYTES])
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    /* OSSL_PARAM takes its inputs by pointers that are not const. */
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
