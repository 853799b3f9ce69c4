/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of connections in the simulator, in place of those of crypto/derive.c, because some hundred connections of a
 * seed took 3 % of its CPU time for them. As there, each bit of the key, the transcript and the label changes the key
 * of a direction, but who sees it can compute the others. tests/crypto and all tests of processes try HKDF itself. */
#include "crypto/derive.h"

#include <string.h>

static uint64_t mixed(uint64_t state, uint64_t word)
{
    state = (state ^ word) * 0x9e3779b97f4a7c15ull;
    return state ^ state >> 29;
}

static uint64_t bytes_mixed(uint64_t state, const void *bytes, size_t count)
{
    state = mixed(state, count);
    for (size_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, (const uint8_t *)bytes + at,
               count - at < sizeof word ? count - at : sizeof word);
        state = mixed(state, word);
    }
    return state;
}

bool leat_key_derive(const struct leat_key *key, const void *transcript, size_t transcript_bytes,
                     const char *label, uint8_t out[LEAT_AEGIS_KEY_BYTES])
{
    uint64_t state = bytes_mixed(0, key->bytes, sizeof key->bytes);
    state = bytes_mixed(state, transcript, transcript_bytes);
    state = bytes_mixed(state, label, strlen(label));
    uint64_t words[LEAT_AEGIS_KEY_BYTES / sizeof(uint64_t)];
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        words[i] = state = mixed(state, i);
    memcpy(out, words, sizeof words);
    return true;
}
