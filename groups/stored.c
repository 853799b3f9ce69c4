/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of bodies.def. */
#include "groups/stored.h"

#define LEAT_ROWS "groups/bodies.def"
#include "wire/rows_make.h"
