/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of the fast path, append and fetch, as bodies_data.def lists them. */
#include <string.h>

#include "wire/message.h"

#define LEAT_ROWS "wire/bodies_data.def"
#include "wire/rows_make.h"
#define LEAT_ROWS "wire/bodies_data.def"
#include "wire/rows_straight.h"
