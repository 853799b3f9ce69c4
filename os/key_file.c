/* SPDX-License-Identifier: Apache-2.0 */
/* A file with a key: read, or made when it is missing. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/internal.h"

enum { TEXT_BYTES = 2 * LEAT_OS_KEY_BYTES, READ_BYTES = TEXT_BYTES + 16 };

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static bool text_parse(char *text, size_t bytes, uint8_t out_key[LEAT_OS_KEY_BYTES])
{
    while (bytes > 0 && strchr(" \t\r\n", text[bytes - 1]))
        bytes--;
    if (bytes != TEXT_BYTES) return false;
    for (size_t i = 0; i < LEAT_OS_KEY_BYTES; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out_key[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Could another account read or change the file? */
static leat_err access_check(const char *path, const struct stat *info, struct leat_error *error)
{
    if (!S_ISREG(info->st_mode))
        return leat_error_set(error, LEAT_E_CONFIG, "the key %.200s is no file", path);
    if (info->st_uid != geteuid() && info->st_uid != 0)
        return leat_error_set(error, LEAT_E_CONFIG, "the key %.200s belongs to another account",
                              path);
    if (info->st_mode & (S_IRWXG | S_IRWXO))
        return leat_error_set(
            error, LEAT_E_CONFIG,
            "the key %.180s can be read or changed by others: chmod 600 it, or make a new one "
            "if they may have read it",
            path);
    return LEAT_OK;
}

/* LEAT_E_NOT_FOUND: there is none. */
static leat_err key_read(const char *path, uint8_t out_key[LEAT_OS_KEY_BYTES],
                         struct leat_error *error)
{
    /* O_NONBLOCK: opening a pipe must not block for ever. A link is followed: secrets are often mounted as links. The
     * owner and the permissions of the file itself are checked. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return LEAT_E_NOT_FOUND;
    if (fd < 0)
        return leat_error_set(error, LEAT_E_CONFIG, "can't open the key %.180s: %s", path,
                              strerror(errno));
    struct stat info;
    char text[READ_BYTES] = "";
    leat_err rc = fstat(fd, &info) == 0 ? access_check(path, &info, error) : LEAT_E_CONFIG;
    if (rc == LEAT_OK) {
        ssize_t got = read(fd, text, sizeof text);
        if (got < 0 || !text_parse(text, (size_t)got, out_key))
            rc = leat_error_set(
                error, LEAT_E_CONFIG,
                "%.180s holds no key (%d hexadecimal digits in one line): copy that of another "
                "node, or remove it to have one made",
                path, TEXT_BYTES);
    }
    explicit_bzero(text, sizeof text);
    (void)close(fd);
    return rc;
}

static bool durable_write(int fd, const char *text, size_t bytes)
{
    return write(fd, text, bytes) == (ssize_t)bytes && fsync(fd) == 0;
}

static bool directory_sync(const char *path)
{
    char directory[LEAT_OS_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) (void)close(fd);
    return synced;
}

/* Written whole under a temporary name, then linked: of two concurrent processes the first wins, and no process ever
 * sees half a key. LEAT_E_EXISTS: the file is there by now. */
static leat_err key_make(const char *path, struct leat_error *error)
{
    char other[LEAT_OS_PATH_BYTES + 8], text[TEXT_BYTES + 2];
    uint8_t key[LEAT_OS_KEY_BYTES];
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return leat_error_set(error, LEAT_E_INTERNAL, "the kernel gives no random numbers");
    for (size_t i = 0; i < sizeof key; i++)
        snprintf(text + 2 * i, 3, "%02x", key[i]);
    text[TEXT_BYTES] = '\n';
    snprintf(other, sizeof other, "%s.XXXXXX", path);
    int fd = mkostemp(other, O_CLOEXEC); /* 0600 */
    bool written = fd >= 0 && durable_write(fd, text, TEXT_BYTES + 1);
    bool linked = written && link(other, path) == 0;
    int why = errno;
    if (fd >= 0) {
        (void)close(fd);
        (void)unlink(other);
    }
    explicit_bzero(key, sizeof key);
    explicit_bzero(text, sizeof text);
    if (!linked && written && why == EEXIST) return LEAT_E_EXISTS;
    if (!linked || !directory_sync(path))
        return leat_error_set(error, LEAT_E_CONFIG, "can't make the key %.180s: %s", path,
                              strerror(linked ? errno : why));
    return LEAT_OK;
}

leat_err leat_os_key_file(const char *path, bool directories, uint8_t out_key[LEAT_OS_KEY_BYTES],
                          bool *out_made, struct leat_error *error)
{
    leat_err rc = key_read(path, out_key, error);
    *out_made = false;
    if (rc != LEAT_E_NOT_FOUND) return rc;
    char directory[LEAT_OS_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (directories && slash && slash > path) {
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
        rc = leat_os_directories_make(directory, "--cluster-key", error);
        if (rc != LEAT_OK) return rc;
    }
    rc = key_make(path, error);
    *out_made = rc == LEAT_OK;
    if (rc != LEAT_OK && rc != LEAT_E_EXISTS) return rc;
    rc = key_read(path, out_key, error);
    return rc == LEAT_E_NOT_FOUND
               ? leat_error_set(error, LEAT_E_CONFIG, "the key %.180s was removed meanwhile", path)
               : rc;
}
