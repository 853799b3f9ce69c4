/* See bug.h. */
#include "base/bug.h"

enum leat_bug leat_bug;
