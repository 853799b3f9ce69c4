/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed file call means. */
#include "os/internal.h"

#include <errno.h>
#include <string.h>

const char *leat_os_open_cause(int error)
{
    return error == ELOOP ? "it is a symbolic link, which only directories may be"
                          : strerror(error);
}

leat_err leat_os_errno(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: /* a limit on file sizes is space that is not there */
        return LEAT_E_DISK_FULL;
    case ENOENT:
        return LEAT_E_NOT_FOUND;
    case EEXIST:
        return LEAT_E_EXISTS;
    case ENOMEM:
    case EMFILE: /* the limit of open files: retry after other files are closed */
    case ENFILE:
        return LEAT_E_NO_MEMORY;
    default:
        return LEAT_E_DISK;
    }
}
