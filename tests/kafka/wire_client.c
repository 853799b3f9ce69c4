/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"

enum { WAIT_MS = 20000, REQUEST_BYTES_MAX = 4 * 1024 * 1024 };

unsigned wire_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    close(fd);
    return ntohs(address.sin_port);
}

void wire_open(struct wire_client *client, unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memset(client, 0, sizeof *client);
    leat_kafka_arena_init(&client->arena, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof address), 0);
}

void wire_close(struct wire_client *client)
{
    close(client->fd);
    leat_kafka_arena_fini(&client->arena);
    free(client->in);
}

void wire_send_bytes(struct wire_client *client, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    while (count > 0) {
        ssize_t n = send(client->fd, at, count, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += n;
        count -= (size_t)n;
    }
}

int32_t wire_send(struct wire_client *client, enum leat_kafka_key key, int16_t version,
                  const void *body)
{
    const struct leat_kafka_api *api = leat_kafka_api_find((int16_t)key);
    assert_non_null(api);
    uint8_t *bytes = malloc(REQUEST_BYTES_MAX);
    assert_non_null(bytes);
    struct leat_kafka_writer writer = {
        .bytes = bytes, .capacity = REQUEST_BYTES_MAX, .version = version};
    leat_kafka_write_i32(&writer, 0);
    leat_kafka_write_i16(&writer, (int16_t)key);
    leat_kafka_write_i16(&writer, version);
    leat_kafka_write_i32(&writer, ++client->correlation);
    leat_kafka_write_string(&writer, leat_kafka_text("test"));
    writer.flexible = version >= api->flexible;
    if (writer.flexible) leat_kafka_write_no_tags(&writer);
    leat_kafka_encode(&writer, api->request(), body);
    assert_true(writer.used <= writer.capacity);
    leat_put_be32(bytes, (uint32_t)writer.used - 4);
    wire_send_bytes(client, bytes, writer.used);
    free(bytes);
    return client->correlation;
}

static bool read_exactly(int fd, uint8_t *out, size_t count)
{
    while (count > 0) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, WAIT_MS) <= 0) fail_msg("the server says nothing");
        ssize_t n = recv(fd, out, count, 0);
        if (n <= 0) return false;
        out += n;
        count -= (size_t)n;
    }
    return true;
}

bool wire_next(struct wire_client *client, const uint8_t **out_bytes, size_t *out_count)
{
    uint8_t head[4];
    if (!read_exactly(client->fd, head, sizeof head)) return false;
    client->in_bytes = leat_get_be32(head);
    assert_true(client->in_bytes <= LEAT_KAFKA_ANSWER_BYTES_MAX);
    client->in = realloc(client->in, client->in_bytes + 1);
    assert_non_null(client->in);
    assert_true(read_exactly(client->fd, client->in, client->in_bytes));
    *out_bytes = client->in;
    *out_count = client->in_bytes;
    return true;
}

void *wire_answer(struct wire_client *client, enum leat_kafka_key key, int16_t version,
                  int32_t correlation)
{
    const struct leat_kafka_api *api = leat_kafka_api_find((int16_t)key);
    const uint8_t *bytes;
    size_t count;
    if (!wire_next(client, &bytes, &count)) fail_msg("%s %d: closed", api->name, version);
    leat_kafka_arena_fini(&client->arena);
    struct leat_kafka_reader reader = {
        .at = bytes, .end = bytes + count, .version = version, .arena = &client->arena};
    assert_int_equal(leat_kafka_read_i32(&reader), correlation);
    reader.flexible = version >= api->flexible;
    if (reader.flexible && key != LEAT_KAFKA_API_VERSIONS) leat_kafka_skip_tags(&reader);
    const struct leat_kafka_type *type = api->response();
    void *out = leat_kafka_arena_take(&client->arena, 1, type->bytes);
    leat_err rc = leat_kafka_decode(&reader, type, out);
    if (rc != LEAT_OK) fail_msg("%s %d: %s", api->name, version, reader.wrong);
    assert_ptr_equal(reader.at, reader.end);
    return out;
}

void *wire_call(struct wire_client *client, enum leat_kafka_key key, int16_t version,
                const void *body)
{
    return wire_answer(client, key, version, wire_send(client, key, version, body));
}

void wire_expect_closed(struct wire_client *client)
{
    const uint8_t *bytes;
    size_t count;
    assert_false(wire_next(client, &bytes, &count));
}
