/* SPDX-License-Identifier: Apache-2.0 */
/* Host and port, told apart. */
#include "base/address.h"

#include <string.h>

enum { PORT_DIGITS_MAX = 5 };

bool leat_address_split(const char *text, size_t bytes, struct leat_address_parts *out_parts)
{
    size_t digits = 0;
    while (digits < bytes && text[bytes - 1 - digits] >= '0' && text[bytes - 1 - digits] <= '9')
        digits++;
    if (digits == 0 || digits > PORT_DIGITS_MAX || digits == bytes ||
        text[bytes - 1 - digits] != ':')
        return false;
    uint32_t port = 0;
    for (size_t i = bytes - digits; i < bytes; i++)
        port = port * 10 + (uint32_t)(text[i] - '0');
    size_t host_bytes = bytes - digits - 1;
    bool bracketed = host_bytes > 2 && text[0] == '[' && text[host_bytes - 1] == ']';
    if (bracketed) {
        text++;
        host_bytes -= 2;
    } else if (memchr(text, ':', host_bytes) || (host_bytes > 0 && text[0] == '[')) {
        return false;
    }
    if (port > UINT16_MAX) return false;
    *out_parts = (struct leat_address_parts){text, host_bytes, (uint16_t)port};
    return true;
}
