/* SPDX-License-Identifier: Apache-2.0 */
/* The baseline transport of benchmarks: each write is a request, which the backup handles and answers like any other.
 * The rest is as with tcp. Benchmarks and tests link this transport; leatd does not. */
#include "replication/transport/data.h"

static void answer(struct leat_link *link, const struct leat_link_ticket *ticket, leat_err rc)
{
    if (rc == LEAT_OK)
        leat_link_answer(leat_link_links(link), ticket, "\x90", 1);
    else
        leat_link_answer_error(leat_link_links(link), ticket, rc, leat_err_text(rc));
}

const struct leat_transport_baseline leat_transport_rpc = {LEAT_DATA_REQUEST, answer};
