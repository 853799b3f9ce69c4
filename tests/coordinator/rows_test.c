/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of bodies between coordinators, of committed entries, and of the bodies at the beginning of a connection:
 * the bytes of the bodies, the bodies that are refused, and the page that shows the tables. The argument is the path of
 * the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/membership/messages.h"
#include "coordinator/metadata/assign.h"
#include "coordinator/recovery/attempt.h"
#include "link/bodies.h"
#include "tests/rows_expect.h"
#include "tests/rows_page.h"

static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "link/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "coordinator/membership/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "coordinator/recovery/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "coordinator/metadata/bodies.def"
#include "tests/rows_list.h"
};
static const struct rows_bytes rows_bytes[] = {
#include "rows_bytes.inc"
};
#include "tests/rows_main.h"
