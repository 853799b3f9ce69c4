/* SPDX-License-Identifier: Apache-2.0 */
/* Every message of the Kafka protocol, requests and answers. The first byte is the API's key, the
 * second its version, with the top bit for answers. What decodes is encoded again; that must decode,
 * and encode to the same bytes. The seeds are what real clients sent. */
#include "fuzz.h"

#include "kafka/codec/messages.h"

enum { OUT_BYTES = 256 * 1024, ARENA_BYTES = 16 * 1024 * 1024 };

struct api {
    int16_t key, first, last, flexible;
    leat_kafka_type_fn request, response;
};
static const struct api apis[] = {
#define IN_PLACE 0
#define API(NAME, number, from, to, flexible_from, entry, flag)                                    \
    {(number),                                                                                     \
     (from),                                                                                       \
     (to),                                                                                         \
     (flexible_from),                                                                              \
     leat_kafka_type_##entry##_request,                                                            \
     leat_kafka_type_##entry##_response},
#include "kafka/codec/apis.def"
#undef API
};

static const struct api *api_find(uint8_t key)
{
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++)
        if (apis[i].key == key) return &apis[i];
    return &apis[key % (sizeof apis / sizeof *apis)];
}

static size_t encode(uint8_t *out, const struct leat_kafka_type *type, int16_t version,
                     bool flexible, const void *in)
{
    struct leat_kafka_writer writer = {
        .bytes = out, .capacity = OUT_BYTES, .version = version, .flexible = flexible};
    leat_kafka_encode(&writer, type, in);
    return writer.used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t first[OUT_BYTES], second[OUT_BYTES];
    if (size < 2) return 0;
    const struct api *api = api_find(data[0]);
    int16_t version = (int16_t)(api->first + (data[1] & 0x7f) % (api->last - api->first + 1));
    if ((data[1] & 0x7f) >= api->first && (data[1] & 0x7f) <= api->last) version = data[1] & 0x7f;
    const struct leat_kafka_type *type = (data[1] & 0x80) != 0 ? api->response() : api->request();
    const bool flexible = version >= api->flexible;
    struct leat_kafka_arena arena;
    leat_kafka_arena_init(&arena, NULL, ARENA_BYTES);
    struct leat_kafka_reader reader = {.at = data + 2,
                                       .end = data + size,
                                       .version = version,
                                       .flexible = flexible,
                                       .arena = &arena};
    void *body = leat_kafka_arena_take(&arena, 1, type->bytes);
    leat_err rc = leat_kafka_decode(&reader, type, body);
    LEAT_ASSERT(reader.at <= reader.end);
    LEAT_ASSERT((rc == LEAT_OK) == (reader.wrong == NULL));
    size_t bytes = rc == LEAT_OK ? encode(first, type, version, flexible, body) : OUT_BYTES + 1;
    if (bytes <= OUT_BYTES) {
        reader.at = first;
        reader.end = first + bytes;
        LEAT_ASSERT(leat_kafka_decode(&reader, type, body) == LEAT_OK && reader.at == reader.end);
        LEAT_ASSERT(encode(second, type, version, flexible, body) == bytes);
        LEAT_ASSERT(memcmp(first, second, bytes) == 0);
    }
    leat_kafka_arena_fini(&arena);
    return 0;
}
