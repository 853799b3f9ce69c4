# SPDX-License-Identifier: Apache-2.0
"""A test that is killed leaves nobody behind."""
import glob
import os
import select
import signal
import subprocess
import sys

import leftovers
import tied
from rig import LEAT, LEATD, Server, Skipped, WAIT_S, check, check_in, directory, equal, line_read, main, on_end, process_end, until

HERE = os.path.dirname(os.path.abspath(__file__))
ORPHAN_S = 10
# A test as the others are, that stands still with its server and a program that waits for records.
STARTER = '''
import os
import sys
from rig import Server
server, other = Server(), Server()
other.data = os.path.join(server.home, 'elsewhere')
server.start()
other.launch()
server.leat('stream', 'create', 's')
print(server.process.pid, other.process.pid, server.leat_start('consume', 's').pid, flush=True)
sys.stdin.read()
'''


def ended(fd, wait_s=0):
    return bool(select.select([fd], [], [], wait_s)[0])


def forget(fd):
    if not ended(fd):
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    os.close(fd)


def test_what_a_killed_test_started_dies_with_it():
    """And what it made goes: directories and memory, also of a server that it did not wait for and of one elsewhere."""
    place = directory()
    starter = subprocess.Popen([sys.executable, '-B', '-c', STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE,
                               env=dict(os.environ, LEAT_TEST_DIR=place), start_new_session=True)
    on_end(lambda: process_end(starter))
    pids = line_read(starter.stdout).split()
    equal(len(pids), 3, 'processes of the test')
    fds = [os.pidfd_open(int(pid)) for pid in pids]
    for fd in fds:
        on_end(lambda fd=fd: forget(fd))
    check(not any(map(ended, fds)), 'all run')
    until(lambda: len(list(leftovers.pools(place))) == 2, 'both servers have a pool')
    os.killpg(starter.pid, signal.SIGKILL)
    for what, fd in zip(('server', 'other server', 'reader'), fds):
        check(ended(fd, ORPHAN_S), f'the {what} of a killed test goes on')
    until(lambda: not list(leftovers.pools(place)), 'their pools go')
    until(lambda: not os.listdir(place), 'their directories go')


def test_a_program_that_is_missing_leaves_no_server():
    """What tests/clients/run does with a client that is not installed."""
    server = Server()
    mark = os.path.basename(server.home)
    done = tied.run([os.path.join(HERE, '../clients/run'), '--leatd', LEATD, '--leat', LEAT, '--clients', server.home,
                     'librdkafka'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=WAIT_S,
                    env=dict(os.environ, LEAT_TEST_MARK=mark))
    equal(done.returncode, 1, done.stdout)
    check_in('librdkafka (Debian): end: exit code 127', done.stdout)
    equal(with_mark(mark), [], 'processes that go on')


def test_a_pool_name_that_another_account_took_keeps_no_server_from_its_start():
    server = Server().start()
    usual = server.pool
    if not usual.startswith('/dev/shm/'):
        raise Skipped('the pool of this account lies in the data directory')
    server.stop()
    with open(usual, 'w'):
        on_end(lambda: os.path.exists(usual) and os.unlink(usual))
    os.chown(usual, 65534, 65534)
    server.start()
    check(server.pool.startswith(usual + '-'), server.pool)
    check_in(f'{usual} belongs to another account', server.node_log())
    server.leat('stream', 'create', 's', '--durability', 'memory')
    server.produce('s', ['one', 'two'])
    for free in (False, True):
        server.kill()
        if free:
            os.unlink(usual)
        server.start()
        check(server.pool.startswith(usual + '-'), server.pool)
        equal(server.values('s'), ['one', 'two'])
    server.stop()
    equal(glob.glob(usual + '*'), [], 'what is left behind')


def with_mark(mark):
    """Processes whose environment has it."""
    found = []
    for path in glob.glob('/proc/[0-9]*/environ'):
        try:
            with open(path, 'rb') as file:
                if f'LEAT_TEST_MARK={mark}'.encode() in file.read():
                    found.append(path)
        except OSError:
            pass  # somebody else's, or gone
    return found


if __name__ == '__main__':
    main()
