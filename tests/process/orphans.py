"""A test that is killed leaves nobody behind."""
import glob
import os
import select
import signal
import subprocess
import sys

import tied
from rig import LEAT, LEATD, Server, WAIT_S, check, check_in, equal, line_read, main, on_end, process_end

HERE = os.path.dirname(os.path.abspath(__file__))
ORPHAN_S = 10
# A test as the others are, that stands still with its server and a program that waits for records.
STARTER = '''
import sys
from rig import Server
server = Server(data=sys.argv[1]).start()
server.leat('stream', 'create', 's')
print(server.process.pid, server.leat_start('consume', 's').pid, flush=True)
sys.stdin.read()
'''


def ended(fd, wait_s=0):
    return bool(select.select([fd], [], [], wait_s)[0])


def forget(fd):
    if not ended(fd):
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    os.close(fd)


def test_what_a_killed_test_started_dies_with_it():
    server = Server()  # not started: its directories are removed at the end, and its pool
    starter = subprocess.Popen([sys.executable, '-B', '-c', STARTER, server.data], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, cwd=HERE, env=dict(os.environ, LEAT_TEST_DIR=server.home))
    on_end(lambda: process_end(starter))
    pids = line_read(starter.stdout).split()
    equal(len(pids), 2, 'processes of the test')
    server.pools.update(server.pools_named())
    fds = [os.pidfd_open(int(pid)) for pid in pids]
    for fd in fds:
        on_end(lambda fd=fd: forget(fd))
    check(not any(map(ended, fds)), 'both run')
    starter.kill()
    for what, fd in zip(('server', 'reader'), fds):
        check(ended(fd, ORPHAN_S), f'the {what} of a killed test goes on')


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
