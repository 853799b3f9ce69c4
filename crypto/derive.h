/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a direction of a connection. */
#ifndef LEAT_CRYPTO_DERIVE_H
#define LEAT_CRYPTO_DERIVE_H

#include <stdbool.h>

#include "crypto/aegis.h"
#include "crypto/mac.h"

/** By HKDF-SHA-256: see README.md. False without memory. The simulator has another one: tests/sim/derive.c. */
bool leat_key_derive(const struct leat_key *key, const void *transcript, size_t transcript_bytes,
                     const char *label, uint8_t out[LEAT_AEGIS_KEY_BYTES]);

#endif
