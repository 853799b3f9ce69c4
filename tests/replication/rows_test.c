/* SPDX-License-Identifier: Apache-2.0 */
/* The table of bodies between primary and backup: the bytes of the bodies, the bodies that are refused, and the page
 * that shows the table. The argument is the path of the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replication/control/messages.h"
#include "tests/rows_expect.h"
#include "tests/rows_page.h"

static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "replication/control/bodies.def"
#include "tests/rows_list.h"
};
static const struct rows_bytes rows_bytes[] = {
#include "rows_bytes.inc"
};
#include "tests/rows_main.h"
