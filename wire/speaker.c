/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/speaker.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/message.h"

enum {
    KAFKA_FIRST_BYTES_MAX = 64 * 1024,
    KAFKA_KEY_MAX = 100,
    KAFKA_VERSION_MAX = 30,
    TLS_HANDSHAKE = 22,
    NODE_KIND_MIN = 256, /* as link/ has it: of the first frames of nodes */
    NODE_KIND_MAX = 259,
};

static bool begins(const uint8_t *data, size_t bytes, const char *text)
{
    size_t count = strlen(text);
    return bytes >= count && memcmp(data, text, count) == 0;
}

static bool is_http(const uint8_t *data, size_t bytes)
{
    static const char *const methods[] = {"GET ",     "HEAD ",    "POST ", "PUT ",
                                          "OPTIONS ", "CONNECT ", "PRI "};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (begins(data, bytes, methods[i])) return true;
    return false;
}

enum leat_speaker leat_speaker_of(const uint8_t *data, size_t bytes)
{
    if (bytes >= 3 && data[0] == TLS_HANDSHAKE && data[1] == 3 && data[2] <= 4)
        return LEAT_SPEAKER_TLS;
    if (is_http(data, bytes)) return LEAT_SPEAKER_HTTP;
    if (begins(data, bytes, "SSH-")) return LEAT_SPEAKER_SSH;
    if (bytes < 8) return LEAT_SPEAKER_UNKNOWN;
    /* A frame of Leat: length, kind, version. */
    if (leat_get_le32(data) <= LEAT_FRAME_BYTES_MAX && data[6] >= 1 && data[6] < 16) {
        uint16_t kind = leat_get_le16(data + 4);
        if (kind == LEAT_KIND_HELLO) return LEAT_SPEAKER_CLIENT;
        if (kind >= NODE_KIND_MIN && kind <= NODE_KIND_MAX) return LEAT_SPEAKER_NODE;
    }
    uint32_t length = leat_get_be32(data);
    if (length >= 8 && length <= KAFKA_FIRST_BYTES_MAX &&
        leat_get_be16(data + 4) <= KAFKA_KEY_MAX && leat_get_be16(data + 6) <= KAFKA_VERSION_MAX)
        return LEAT_SPEAKER_KAFKA;
    return LEAT_SPEAKER_UNKNOWN;
}

const char *leat_speaker_text(enum leat_speaker speaker)
{
    switch (speaker) {
    case LEAT_SPEAKER_CLIENT:
        return "it speaks Leat's own protocol, whose port is that of --listen (7700)";
    case LEAT_SPEAKER_NODE:
        return "it speaks as a node of a cluster, whose port is that of --node-listen (7701)";
    case LEAT_SPEAKER_KAFKA:
        return "it speaks Kafka's protocol, whose port is that of --kafka (9092)";
    case LEAT_SPEAKER_TLS:
        return "it speaks TLS, which this port does not: connect without it";
    case LEAT_SPEAKER_HTTP:
        return "it speaks HTTP, which no port here does";
    case LEAT_SPEAKER_SSH:
        return "it speaks SSH, which no port here does";
    case LEAT_SPEAKER_UNKNOWN:
        break;
    }
    return NULL;
}
