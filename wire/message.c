/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies, as bodies.def and bodies_cluster.def list them. What has two forms is written and read here
 * by one of two rows. */
#include "wire/message_cluster.h"

#include <string.h>

#define LEAT_ROWS "wire/bodies.def"
#include "wire/rows_make.h"
#define LEAT_ROWS "wire/bodies_cluster.def"
#include "wire/rows_make.h"

void leat_msg_error_encode(struct leat_msg_writer *writer, leat_err code, const char *text)
{
    struct leat_msg_error error = {
        code, (uint32_t)leat_err_class(code), {text, (uint32_t)strlen(text)}};
    leat_msg_row_write(writer, leat_msg_error_row(), &error);
}

leat_err leat_msg_error_decode(const void *bytes, size_t count, struct leat_msg_error *out)
{
    struct leat_msg_error error;
    if (!leat_msg_row_decode(bytes, count, leat_msg_error_row(), &error)) return LEAT_E_INVALID;
    *out = error;
    return LEAT_OK;
}

void leat_msg_stream_write(struct leat_msg_writer *writer, const struct leat_msg_stream *stream)
{
    leat_msg_row_write(
        writer, stream->code == LEAT_OK ? leat_msg_stream_row() : leat_msg_stream_refused_row(),
        stream);
}

void leat_msg_stream_read(struct leat_msg_reader *reader, struct leat_msg_stream *out)
{
    struct leat_msg_reader ahead = *reader;
    (void)leat_msg_read_array(&ahead);
    bool refused = leat_msg_read_u32(&ahead) != LEAT_OK;
    (void)leat_msg_row_read(reader, refused ? leat_msg_stream_refused_row() : leat_msg_stream_row(),
                            out);
}

static const struct leat_msg_row *locate_row(uint32_t what)
{
    return what == LEAT_LOCATE_POSITION ? leat_msg_locate_place_row() : leat_msg_locate_row();
}

void leat_msg_locate_write(struct leat_msg_writer *writer, const struct leat_msg_locate *locate)
{
    leat_msg_row_write(writer, locate_row(locate->what), locate);
}

void leat_msg_locate_read(struct leat_msg_reader *reader, struct leat_msg_locate *out)
{
    struct leat_msg_reader ahead = *reader;
    (void)leat_msg_read_array(&ahead);
    leat_msg_skip_n(&ahead, 3);
    (void)leat_msg_row_read(reader, locate_row(leat_msg_read_u32(&ahead)), out);
}

void leat_msg_cluster_write(struct leat_msg_writer *writer, const struct leat_msg_cluster *cluster)
{
    leat_msg_row_write(writer, leat_msg_cluster_row(), cluster);
}

void leat_msg_cluster_read(struct leat_msg_reader *reader, struct leat_msg_cluster *out)
{
    uint32_t left = leat_msg_row_read(reader, leat_msg_cluster_row(), out);
    if (left < 2) reader->failed = true; /* the voters, the nodes */
    out->has_recovery = left > 2;
}

void leat_msg_cluster_node_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_cluster_node *node)
{
    leat_msg_row_write(writer, leat_msg_cluster_node_row(), node);
}

void leat_msg_cluster_node_read(struct leat_msg_reader *reader, struct leat_msg_cluster_node *out)
{
    uint32_t left = leat_msg_row_read(reader, leat_msg_cluster_node_row(), out);
    if (left == 0) return;
    leat_msg_node_report_read(reader, &out->report);
    leat_msg_skip_n(reader, left - 1);
}

void leat_msg_node_report_end_write(struct leat_msg_writer *writer,
                                    const struct leat_msg_node_report *report)
{
    leat_msg_row_write_behind(writer, leat_msg_node_report_row(), report,
                              offsetof(struct leat_msg_node_report, peer_count));
}

void leat_msg_node_report_passed_write(struct leat_msg_writer *writer,
                                       const struct leat_msg_node_report *report)
{
    leat_msg_row_write_behind(writer, leat_msg_node_report_row(), report,
                              offsetof(struct leat_msg_node_report, troubled_count));
}
