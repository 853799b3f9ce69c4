# SPDX-License-Identifier: Apache-2.0
"""Stops, kills and starts under producers that go on by themselves; what a start reads."""
import ctypes
import json
import os
import shutil
import signal
import subprocess
import threading
import time

from rig import WAIT_S, Server, Skipped, check, check_in, equal, line_read, main, pause, process_end, until
import tied


def port_of(server):
    return ('--listen', server.address)


def feed(process, producer, stop, counts):
    """Lines one by one, as a log file grows; the pipe pushes back while the server is away."""
    number = 0
    while not stop.is_set():
        process.stdin.write(''.join(f'{producer} {number + i}\n' for i in range(20)).encode())
        process.stdin.flush()
        number += 20
    counts[producer] = number
    process.stdin.close()


def cycles(end, durability, turns=6):
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 2, '--streamlets', 2, '--durability', durability)
    again = port_of(server)
    stop, counts = threading.Event(), {}
    producers, threads = [], []
    for p in range(3):
        process = server.leat_start('produce', 's', '--batch-bytes', '2K', stdin=subprocess.PIPE)
        threads.append(threading.Thread(target=feed, args=(process, p, stop, counts)))
        producers.append(process)
    for thread in threads:
        thread.start()
    try:
        for _ in range(turns):
            # Appends are answered and others under way when it ends.
            before = server.status()['appended_records']
            until(lambda: server.status()['appended_records'] > before + 5000, 'appends go on')
            end(server)
            server.start(*again)
    finally:
        stop.set()
    for thread in threads:
        thread.join(60)
    for process in producers:
        equal(process.wait(60), 0, process.stderr.read())
    got = server.leat('consume', 's', '--until-end', '--format', '%p %v').stdout.splitlines()
    # Exactly once in all; in each log the order of its producer.
    equal(len(got), sum(counts.values()), 'records')
    equal(len({line.split(' ', 1)[1] for line in got}), len(got), 'different records')
    last = {}
    for line in got:
        partition, producer, number = line.split()
        key = partition, producer
        check(int(number) > last.get(key, -1), 'order', line, last.get(key))
        last[key] = int(number)
    print(f'  {durability}: {len(got)} records over {turns} ends')


def test_kills_disk():
    cycles(Server.kill, 'disk')


def test_kills_memory():
    cycles(Server.kill, 'memory')


def test_stops_disk():
    cycles(Server.stop, 'disk')


def test_stops_memory():
    cycles(Server.stop, 'memory')


def test_committed_offsets_survive():
    server = Server().start()
    again = port_of(server)
    server.leat('stream', 'create', 's', '--logs', 1)
    server.produce('s', [str(i) for i in range(100)])
    expected = 0
    for end in (Server.kill, Server.stop):
        got = server.leat('consume', 's', '--group', 'readers', '--max-records', 20).stdout.split()
        equal(got, [str(i) for i in range(expected, expected + 20)], 'the group goes on where it was')
        expected += 20
        end(server)
        server.start(*again)
    equal(server.leat('consume', 's', '--group', 'readers', '--until-end').stdout.split(),
          [str(i) for i in range(40, 100)])


def test_consumer_waits_through_a_restart():
    server = Server().start()
    again = port_of(server)
    server.leat('stream', 'create', 's', '--logs', 1)
    server.produce('s', ['a'])
    process = server.leat_start('consume', 's', '--max-records', 3)
    equal(line_read(process.stdout), 'a\n')
    for end, value in ((Server.kill, 'b'), (Server.stop, 'c')):
        end(server)
        server.start(*again)
        server.produce('s', [value])
    equal(process.wait(60), 0)
    equal(process.stdout.read(), b'b\nc\n')


def stored(megabytes):
    """What the next start reads, and how large the store is."""
    server = Server('--scrub', '0').start()
    server.leat('stream', 'create', 's', '--logs', 1, '--durability', 'memory')
    done = server.leat('bench', 'append', '--stream', 's', '--producers', 1, '--logs', 1,
                       '--records', megabytes * 10000, '--json', '-')
    equal(json.loads(done.stdout)['failed_records'], 0)
    kept = server.logs('s')[0, 0]
    result = []
    for end in (Server.stop, Server.kill):
        end(server)
        server.start()
        result.append(server.read_bytes())
        now = server.logs('s')[0, 0]
        equal((now['end_offset'], now['state']), (kept['end_offset'], 'ok'))
    server.stop()
    return result, kept['bytes']


def test_a_start_reads_open_segments_only():
    (small_stop, small_kill), small_bytes = stored(5)
    (large_stop, large_kill), large_bytes = stored(200)
    print(f'  read at start: {small_stop >> 10} KiB and {small_kill >> 10} KiB of '
          f'{small_bytes >> 20} MiB, {large_stop >> 10} KiB and {large_kill >> 10} KiB of '
          f'{large_bytes >> 20} MiB')
    check(large_bytes > 30 * small_bytes, 'sizes', small_bytes, large_bytes)
    # One log has one open segment, of 8 MiB at most, read when it is found and when it is closed.
    for read in (large_stop, large_kill):
        check(read < 24 << 20, 'bytes read at start', read)


def test_a_start_that_is_asked_to_stop_keeps_what_memory_has():
    """Of a killed server, whose open segments are in memory alone: no log is there to be hibernated when the start ends early."""
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 2, '--durability', 'memory')
    wanted = [f'value {i}' for i in range(2000)]
    server.produce('s', wanted)
    server.kill()
    ends = []
    for pause_ms in range(0, 60, 2):  # not a wait: the signal meets the start at each of its steps, whichever these are
        server.launch()
        time.sleep(pause_ms / 1000)
        server.process.send_signal(signal.SIGTERM)
        ends.append(server.wait())
    print('  ends of starts:', ends)
    check(0 in ends, 'no start was stopped in order', ends)
    server.start()
    equal(sorted(server.values('s')), sorted(wanted), 'what was acked before the kill')
    server.stop()


def test_a_closed_terminal_stops_a_server_in_order():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as nohup may have started this test, which ignores the signal
    server = Server().start()
    server.leat('stream', 'create', 's', '--durability', 'memory')
    server.produce('s', ['a'])
    server.process.send_signal(signal.SIGHUP)
    equal(server.wait(), 0)
    check_in('asked to stop: writing everything to disk', server.node_log())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    server.start()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    server.process.send_signal(signal.SIGHUP)
    equal(server.values('s'), ['a'])
    check('asked to stop' not in server.node_log(), 'it was asked to stop')
    server.stop()


def traced(server, until_said, do):
    """Starts the server under a tracer. Once it has said `until_said` each of its threads but the first is held at its
    next system call, and do(pid) is called. Returns the exit code."""
    seize, trace_threads, any_thread = 0x4206, 8, 0x40000000  # PTRACE_SEIZE, PTRACE_O_TRACECLONE, __WALL
    go, go_to_call = 7, 24  # PTRACE_CONT, PTRACE_SYSCALL
    process = tied.start(['sh', '-c', 'read -r _; exec "$@"', 'sh', *server.command()], stdin=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    os.set_blocking(process.stderr.fileno(), False)
    said, held, deadline = b'', False, time.monotonic() + WAIT_S

    def request(what, task, data=0):
        return ctypes.CDLL(None, use_errno=True).ptrace(what, task, None, ctypes.c_void_p(data))

    try:
        if request(seize, process.pid, trace_threads) != 0:
            raise Skipped('the kernel lets nobody trace a process')
        process.stdin.write(b'go\n')
        process.stdin.flush()
        while process.returncode is None:
            task, status = os.waitpid(-1, any_thread | os.WNOHANG)
            said += process.stderr.read() or b''
            if not held and until_said.encode() in said:
                held = True
                do(process.pid)
            if task == process.pid and not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
            elif task and os.WIFSTOPPED(status) and (not held or task == process.pid):
                request(go if task == process.pid else go_to_call, task)
            elif time.monotonic() > deadline:
                os.kill(process.pid, signal.SIGKILL)
            else:
                pause()
    finally:
        process_end(process)
    check(time.monotonic() < deadline, f'it did not end, and has said {said!r}')
    return process.returncode


def test_a_start_that_is_refused_ends_at_a_signal():
    """However long its threads take to stop: here they are held."""
    server, other = Server().start(), Server().start()
    server.stop()
    other.stop()
    shutil.rmtree(server.path('raft'))
    shutil.copytree(other.path('raft'), server.path('raft'))
    code = traced(server, 'leatd: ', lambda pid: os.kill(pid, signal.SIGTERM))
    equal(code, server.start_refused()[0], 'the exit code, as if no signal had come')


if __name__ == '__main__':
    main()
