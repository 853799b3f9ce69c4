/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises a protocol by its first bytes, to tell a client that it has the wrong port. */
#ifndef LEAT_WIRE_SPEAKER_H
#define LEAT_WIRE_SPEAKER_H

#include <stddef.h>
#include <stdint.h>

enum leat_speaker {
    LEAT_SPEAKER_UNKNOWN,
    LEAT_SPEAKER_CLIENT, /* Leat's own protocol */
    LEAT_SPEAKER_NODE,
    LEAT_SPEAKER_KAFKA,
    LEAT_SPEAKER_TLS,
    LEAT_SPEAKER_HTTP,
    LEAT_SPEAKER_SSH,
};

/** A guess, from what came first on a connection. */
enum leat_speaker leat_speaker_of(const uint8_t *data, size_t bytes);
/** The text for a protocol: a sentence, or a part of a sentence. UNKNOWN: NULL. */
const char *leat_speaker_text(enum leat_speaker speaker);

#endif
