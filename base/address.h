/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as they are written. */
#ifndef LEAT_BASE_ADDRESS_H
#define LEAT_BASE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct leat_address_parts {
    const char *host; /* view of the text, without brackets; "" of ":PORT" */
    size_t host_bytes;
    uint16_t port;
};

/** "HOST:PORT", "[V6]:PORT" or ":PORT", in `bytes` of text. A bare IPv6 address is not split: its port would be
 * ambiguous. Thread: any. */
bool leat_address_split(const char *text, size_t bytes,
                        struct leat_address_parts *out_parts) LEAT_NODISCARD;

#endif
