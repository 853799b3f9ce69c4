/* SPDX-License-Identifier: Apache-2.0 */
/* The Unix socket: where it lies, and whom it lets in. */
#include "tests/os/net_open_alone.h"

/* Goal: a socket of the data directory, for nobody else from its first moment on; what a killed process has left is
 * removed, and nothing else. */
static void unix_socket_lies_in_the_data_directory(void **state)
{
    (void)state;
    open_begin();
    listen_at("unix:door");
    leat_os_net_stop(&here);
    TRACE_IS("stat 9 door\n"
             "remove 9 door 0\n"
             "socket unix: 5\n"
             "mode 5 0600\n"
             "bind 5 /proc/self/fd/9/door\n"
             "listen 5\n"
             "watch 5\n"
             "poll read\n"
             "OK: unix:door, -\n"
             "poll nothing\n"
             "close 5\n"
             "remove 9 door 0\n"
             "unwatch\n");
    say(STAT, -ENOENT);
    listen_at("unix:door");
    leat_os_net_stop(&here);
    TRACE_IS("stat 9 door\n"
             "socket unix: 5\n"
             "mode 5 0600\n"
             "bind 5 /proc/self/fd/9/door\n"
             "listen 5\n"
             "watch 5\n"
             "poll read\n"
             "OK: unix:door, -\n"
             "poll nothing\n"
             "close 5\n"
             "remove 9 door 0\n"
             "unwatch\n");
    found.st_mode = S_IFREG;
    listen_at("unix:door");
    found.st_mode = S_IFSOCK;
    say(REMOVE, -EACCES);
    listen_at("unix:door");
    TRACE_IS("stat 9 door\n"
             "EXISTS: -, can't listen on unix:door: something else has that name in the data "
             "directory; move it away\n"
             "stat 9 door\n"
             "remove 9 door 0\n"
             "EXISTS: -, can't listen on unix:door: something else has that name in the data "
             "directory; move it away\n");
    alone_end();
}

/* Goal: the socket has a short name of its own in that directory, and a socket that can't be made is reported with the
 * cause. */
static void unix_socket_that_can_not_be_made_is_told(void **state)
{
    (void)state;
    open_begin();
    char longest[120] = "unix:";
    memset(longest + 5, 'n', sizeof longest - 6);
    longest[5 + 107 - 16] = '\0'; /* "/proc/self/fd/9/" */
    say(SOCKET, -EMFILE);
    listen_at(longest);
    longest[5 + 107 - 16] = 'n';
    longest[5 + 108 - 16] = '\0';
    listen_at(longest);
    listen_at("unix:a/b");
    world.data_fd = -1;
    listen_at("unix:door");
    world.data_fd = 0;
    say(MODE, -EPERM);
    listen_at("unix:door");
    world.data_fd = 9;
    say(BIND, -EADDRINUSE);
    listen_at("unix:door");
    say(LISTEN, -EIO);
    listen_at("unix:door");
    say(SOCKET, 0);
    say(MODE, -EPERM);
    listen_at("unix:door");
    listen_at("unix:");
    TRACE_IS("stat 9 "
             "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
             "nnnnnn\n"
             "remove 9 "
             "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
             "nnnnnn 0\n"
             "socket unix: -1\n"
             "CONFIG: -, can't listen on "
             "unix:"
             "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
             "nnnnnn: Too many open files\n"
             "INVALID: -, "
             "unix:"
             "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
             "nnnnnnn is no name in the data directory\n"
             "INVALID: -, unix:a/b is no name in the data directory\n"
             "INVALID: -, unix:door is no name in the data directory\n"
             "stat 0 door\n"
             "remove 0 door 0\n"
             "socket unix: 5\n"
             "mode 5 0600\n"
             "close 5\n"
             "CONFIG: -, can't listen on unix:door: Operation not permitted\n"
             "stat 9 door\n"
             "remove 9 door 0\n"
             "socket unix: 5\n"
             "mode 5 0600\n"
             "bind 5 /proc/self/fd/9/door\n"
             "close 5\n"
             "CONFIG: -, can't listen on unix:door: Address already in use\n"
             "stat 9 door\n"
             "remove 9 door 0\n"
             "socket unix: 5\n"
             "mode 5 0600\n"
             "bind 5 /proc/self/fd/9/door\n"
             "listen 5\n"
             "close 5\n"
             "CONFIG: -, can't listen on unix:door: Input/output error\n"
             "stat 9 door\n"
             "remove 9 door 0\n"
             "socket unix: 0\n"
             "mode 0 0600\n"
             "close 0\n"
             "CONFIG: -, can't listen on unix:door: Operation not permitted\n"
             "INVALID: -, unix: is not an address (HOST:PORT)\n");
    alone_end();
}

/* Goal: this account and root alone come in; others are named, once a minute. */
static void account_that_comes_in_is_ours(void **state)
{
    (void)state;
    static const uid_t accounts[] = {1000, 0, 1001, 1002};
    open_begin();
    listen_at("unix:door");
    trace_begin();
    for (unsigned i = 0; i < 4; i++) {
        peer_who.uid = accounts[i];
        say(ACCEPT, 20 + i);
        doorbell(0);
    }
    now_ms += LEAT_NET_TELL_MS;
    say(GET, -EINVAL); /* nobody knows who it is */
    say(ACCEPT, 25);
    doorbell(0);
    TRACE_IS(
        "door: process 77 of account 1000 from owner, key 0000000000000000c000020700000000\n"
        "watch 20\n"
        "poll read\n"
        "door: process 77 of account 0 from owner, key 0000000000000000c000020700000000\n"
        "watch 21\n"
        "poll read\n"
        "node log: refused at unix:door: process 77 of account 1001; only the account of this "
        "process and root may use it; said once a minute at most\n"
        "close 22\n"
        "close 23\n"
        "node log: refused at unix:door: ; only the account of this process and root may use it; "
        "said once a minute at most\n"
        "close 25\n");
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(unix_socket_lies_in_the_data_directory),
        TRACE_TEST(unix_socket_that_can_not_be_made_is_told),
        TRACE_TEST(account_that_comes_in_is_ours),
    };
    return cmocka_run_group_tests_name("os-net-unix", tests, NULL, NULL);
}
