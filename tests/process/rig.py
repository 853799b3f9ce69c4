# SPDX-License-Identifier: Apache-2.0
"""Real processes for the tests beside this file: a leatd on a free port, the leat program, and the
bytes of a data directory. Python's standard library only.

LEATD and LEAT name the programs. A test is a function test_*(); rig.main() runs them all, or those
named on the command line, each with its own directories. Nothing here sleeps: events are lines of the
server's node log, ends of processes and answers.
"""
import inspect
import json
import os
import re
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

import leftovers
import tied

LEATD = os.environ.get('LEATD', 'leatd')
LEATD_RPC = os.environ.get('LEATD_RPC', 'leatd-rpc')  # has that transport too
LEAT = os.environ.get('LEAT', 'leat')
WAIT_S = int(os.environ.get('LEAT_WAIT_S', 60))  # for anything; reached only by a failure

AT_ONCE = int(os.environ.get('LEAT_AT_ONCE', 6))  # tests of a file; 1: one after the other, in the file's order

NODE_LOG_LINES = 40  # of each node that a failure shows: more pushes its message out of sight

ROW_BYTES, BLOCK_BYTES, SLOT_UNIT = 128, 4096, 16384
ROW_STATE_AT, ROW_FLAGS_AT, ROW_FILE_AT, ROW_PREFIX_ID_AT, FLUSHED = 4, 6, 36, 44, 1
RESERVED, OPEN, HIBERNATED, CLOSED = 1, 2, 3, 4  # states of a row: store/segment.h


class Skipped(Exception):
    """The machine can't do what the test needs. Only what the kernel itself refuses is a reason."""


class Failure(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise Failure(' '.join(str(w) for w in what) or 'check failed')


def check_in(text, where):
    check(text in where, f'{text!r} was not said in:\n{where[-3000:]}')


def equal(got, wanted, what=''):
    check(got == wanted, f'{what}: got {got!r:.500}, wanted {wanted!r:.500}')


# ---- cleaning up ----

_cleanups = []


def directory():
    path = tempfile.mkdtemp(prefix='leat-process-', dir=os.environ.get('LEAT_TEST_DIR', '/tmp'))
    leftovers.note(path)
    _cleanups.append(lambda: leftovers.remove(path))
    return path


def cluster_key():
    """A file with the key of this test's nodes: the same in every process, as nodes may be on several machines."""
    path = os.path.join(directory(), 'cluster.key')
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w') as file:
        file.write('5eed' * 16 + '\n')
    return path


def on_end(function):
    _cleanups.append(function)


def _clean():
    _launched.clear()
    while _cleanups:
        try:
            _cleanups.pop()()
        except Exception:
            traceback.print_exc()


# ---- processes ----

_launched = {}  # in the order of their first starts


def _others_say(server):
    """What a node waits for may be said by others."""
    return '\n'.join(f'---- {other.flags[:4]}\n{other.node_log_end()}' for other in _launched if other is not server)


class Server:
    """One leatd. start() and stop() as often as wanted; the directory stays."""

    def __init__(self, *flags, data=None):
        self.flags = list(flags)
        self.home = directory()
        self.data = data or os.path.join(self.home, 'data')
        self.node_log_path = os.path.join(self.home, 'log')
        self.process = None
        self.pool = None
        self.port = 0
        self.node_log_from = 0
        on_end(self.end)

    def command(self, extra=()):
        flags = self.flags + list(extra)
        given = {f for f in flags if f.startswith('--')}
        defaults = [('--data', self.data), ('--listen', '127.0.0.1:0'), ('--memory', '256M'),
                    ('--cores', '2')]
        program = LEATD_RPC if 'rpc' in flags else LEATD
        return [program] + [w for d in defaults if d[0] not in given for w in d] + flags

    def start(self, *extra):
        self.launch(*extra)
        return self.ready_wait()

    def launch(self, *extra):
        check(self.process is None, 'the server runs')
        _launched[self] = None
        with open(self.node_log_path, 'ab') as node_log:
            self.node_log_from = node_log.tell()
            self.process = tied.start(self.command(extra), stdout=subprocess.PIPE, stderr=node_log)

    def ready_wait(self):
        try:
            self.ready = line_read(self.process.stdout)
        except Failure as failure:
            raise Failure(f'{failure}\n{self.node_log_end()}\n{_others_say(self)}') from None
        match = re.search(r'listening on ([^ ,]+):(\d+)', self.ready)
        if not match:
            code = self.process.wait(WAIT_S)
            self.process = None
            raise Failure(f'leatd is not ready (code {code}): {self.ready}\n{self.node_log_end()}')
        self.host, self.port = match.group(1), int(match.group(2))
        self.address = f'{self.host}:{self.port}'
        with open(f'/proc/{self.process.pid}/maps') as maps:
            found = re.search(r'(\S*/leat-pool-[0-9a-f-]+|\S*/pool)$', maps.read(), re.M)
        self.pool = found.group(1) if found else None
        return self

    def start_refused(self, *extra):
        """Start it and wait for its end: its exit code and what it said."""
        check(self.process is None, 'the server runs')
        done = tied.run(self.command(extra), capture_output=True, timeout=WAIT_S)
        text = (done.stdout + done.stderr).decode(errors='replace')
        check(done.returncode > 0, f'it was not refused: {done.returncode} {text}')
        return done.returncode, text

    def node_log(self):
        """What it wrote on standard error since its last start."""
        with open(self.node_log_path, 'rb') as node_log:
            node_log.seek(self.node_log_from)
            return node_log.read().decode(errors='replace')

    def node_log_end(self):
        return '\n'.join(line[:400] for line in self.node_log().splitlines()[-NODE_LOG_LINES:])

    def node_log_wait(self, pattern, wait_s=WAIT_S):
        """Until a line matches. Polls a growing file: there is no event for that in the library."""
        deadline = time.monotonic() + wait_s
        while not (match := re.search(pattern, self.node_log())):
            check(time.monotonic() < deadline, f'{pattern!r} was never said:\n{self.node_log_end()}')
            check(self.process.poll() is None, f'leatd ended:\n{self.node_log_end()}')
            pause()
        return match

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.wait()
        equal(code, 0, f'exit code after SIGTERM\n{self.node_log_end()}')

    def kill(self):
        self.process.kill()
        equal(self.wait(), -signal.SIGKILL, 'end by kill -9')

    def wait(self):
        code = self.process.wait(WAIT_S)
        self.process.stdout.close()
        self.process = None
        return code

    def end(self):
        if self.process:
            self.process.kill()
            self.wait()

    # the leat program

    def leat(self, *arguments, input=None, code=0, text=True, timeout=WAIT_S):
        done = tied.run([LEAT, *map(str, arguments)], input=input, capture_output=True,
                        timeout=timeout, env=self.environment())
        if code is not None:
            check(done.returncode == code, refusal(arguments, done, code), f'\n{self.node_log_end()}')
        if text:
            done.stdout = done.stdout.decode(errors='replace')
        done.stderr = done.stderr.decode(errors='replace')
        return done

    def leat_start(self, *arguments, **more):
        process = tied.start([LEAT, *map(str, arguments)], env=self.environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        on_end(lambda: process_end(process))
        return process

    def stand_still(self):
        """SIGSTOP, and until it has stopped each thread: one of them could still answer. SIGCONT lets it go on."""
        os.kill(self.process.pid, signal.SIGSTOP)
        tasks = f'/proc/{self.process.pid}/task'

        def stopped(task):
            with open(f'{tasks}/{task}/stat') as stat:
                return stat.read().rpartition(')')[2].split()[0] == 'T'
        until(lambda: all(stopped(task) for task in os.listdir(tasks)), 'it stands still')

    def environment(self):
        return dict(os.environ, LEAT_BROKERS=self.address)

    def describe(self, name):
        return json.loads(self.leat('stream', 'describe', name, '--json').stdout)

    def logs(self, name):
        return {(g['streamlet'], g['log']): g for g in self.describe(name)['log_list']}

    def values(self, name, *options, code=0):
        return self.leat('consume', name, '--until-end', *options, code=code).stdout.splitlines()

    def produce(self, name, lines, *options, code=0):
        return self.leat('produce', name, *options, code=code,
                         input=''.join(f'{line}\n' for line in lines).encode())

    def status(self):
        done = self.leat('status', '--json', code=None)
        status = json.loads(done.stdout or '{}')
        wanted = 1 if any(status.get(key) for key in ('logs_in_trouble', 'logs_passed_over', 'trouble')) else 0
        check(status and done.returncode == wanted, f'leat status: exit code {done.returncode}, not {wanted}', done.stderr,
              f'\n{self.node_log_end()}')
        return status

    # what the kernel says

    def proc(self, name):
        with open(f'/proc/{self.process.pid}/{name}') as file:
            return file.read()

    def memory_bytes(self):
        """Private memory, and its share of the pool, which counts as shared."""
        found = re.findall(r'(RssAnon|RssShmem):\s+(\d+) kB', self.proc('status'))
        equal(len(found), 2, 'fields of /proc/PID/status')
        return sum(int(kib) * 1024 for _, kib in found)

    def read_bytes(self):
        return int(re.search(r'rchar: (\d+)', self.proc('io')).group(1))

    def cpu_ticks(self):
        fields = self.proc('stat').rsplit(')', 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def wakes(self):
        """How often its threads have gone to sleep since it was started."""
        tasks = f'/proc/{self.process.pid}/task'
        return sum(int(re.search(r'voluntary_ctxt_switches:\s+(\d+)', open(f'{tasks}/{task}/status').read()).group(1))
                   for task in os.listdir(tasks))

    # a data directory

    def path(self, *parts):
        return os.path.join(self.data, *parts)

    def rows(self):
        """Rows of the catalogue in use, each a dict."""
        names = ('crc state durability flags zero stream streamlet log epoch segment capacity '
                 'file unit prefix_id_bytes prefix_id_crc zero32 base next time pool_at').split()
        found = []
        with open(self.path('catalogue'), 'rb') as file:
            blob = file.read()
        for number in range((len(blob) - BLOCK_BYTES) // ROW_BYTES):
            at = BLOCK_BYTES + number * ROW_BYTES
            if not blob[at + ROW_STATE_AT]:
                continue
            row = dict(zip(names, struct.unpack_from('<IBBBBIIIIQIIIIIIQQqQ', blob, at)))
            row.update(number=number, at=at)
            found.append(row)
        return found

    def segments(self, stream_id, log=None, streamlet=0):
        """Its rows, in the order of their ids."""
        return sorted((r for r in self.rows() if r['stream'] == stream_id and
                       r['streamlet'] == streamlet and (log is None or r['log'] == log)),
                      key=lambda r: (r['log'], r['segment']))

    def row_open(self, row):
        """As it was while the segment was written."""
        with open(self.path('catalogue'), 'r+b') as file:
            file.seek(row['at'])
            said = bytearray(file.read(ROW_BYTES))
            said[ROW_STATE_AT] = OPEN
            said[ROW_FLAGS_AT] &= ~FLUSHED
            struct.pack_into('<II', said, ROW_PREFIX_ID_AT, 0, 0)
            struct.pack_into('<I', said, 0, crc32c(struct.pack('<I', row['number']) + said[4:]))
            file.seek(row['at'])
            file.write(said)

    def segment_flip(self, row, at, count=1, mask=0x5a):
        self.flip(os.path.join('store', str(row['file'])), row['unit'] * SLOT_UNIT + at, count, mask)

    def flip(self, name, at, count=1, mask=0x5a):
        with open(self.path(name), 'r+b') as file:
            file.seek(at)
            old = file.read(count)
            equal(len(old), count, f'bytes of {name} at {at}')
            file.seek(at)
            file.write(bytes(b ^ mask for b in old))

    def segment_bytes(self, row):
        with open(self.path('store', str(row['file'])), 'rb') as file:
            file.seek(row['unit'] * SLOT_UNIT)
            return file.read(row['capacity'])


def refusal(arguments, done, wanted):
    """What a leat program that ended otherwise said of it, first."""
    said = done.stderr.decode(errors='replace')[-2000:].strip()
    words = ' '.join(map(str, arguments))[:200]
    return f'{said or "nothing was said"}\n  (leat {words}: exit code {done.returncode}, not {wanted})'


def node_logs_print(nodes):
    """Before a failure is told: what is last said is what is seen of a long log."""
    for node in nodes:
        print(f'---- {node.flags[1]}\n{node.node_log_end()}')


def process_end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            try:
                stream.close()
            except BrokenPipeError:
                pass


def line_read(stream):
    """One line, or less at the end; never waits longer than WAIT_S."""
    line = b''
    while not line.endswith(b'\n'):
        readable, _, _ = select.select([stream], [], [], WAIT_S)
        check(readable, f'nothing was said for {WAIT_S} s after {line!r}')
        byte = os.read(stream.fileno(), 1)
        if not byte:
            break
        line += byte
    return line.decode(errors='replace')


def pause():
    """Between two looks at something that gives no event."""
    select.select([], [], [], 0.01)


def until(condition, what, wait_s=WAIT_S):
    deadline = time.monotonic() + wait_s
    while not (value := condition()):
        check(time.monotonic() < deadline, f'waited in vain: {what}')
        pause()
    return value


# ---- entries of a segment ----

ENTRY_BYTES = 32
START, BATCH, TRAILER, TRIM, CLOSE = 2, 3, 4, 5, 6


def entries(blob):
    """(type, position, payload bytes, base offset, records) of each entry."""
    at = 0
    while at + ENTRY_BYTES <= len(blob) and blob[at]:
        kind, _, _, payload, base, records = struct.unpack_from('<BBHIQI', blob, at)
        yield kind, at, payload, base, records
        at += ENTRY_BYTES + (payload + 7) // 8 * 8


# ---- the protocol, as much as bad clients need ----

def _crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    return table


_TABLE = _crc_table()


def crc32c(blob):
    crc = 0xffffffff
    for byte in blob:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


HELLO, PING, METADATA, STREAM_CREATE, STREAM_DELETE, FETCH, LOCATE, STATUS = 1, 2, 3, 4, 5, 9, 10, 17


def pack(value):
    """MessagePack of what requests hold."""
    if value is None:
        return b'\xc0'
    if isinstance(value, bool):
        return b'\xc3' if value else b'\xc2'
    if isinstance(value, int):
        if -32 <= value < 128:
            return struct.pack('b', value)
        return struct.pack('>Bq', 0xd3, value) if value < 0 else struct.pack('>BQ', 0xcf, value)
    if isinstance(value, str):
        return struct.pack('>BH', 0xda, len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return struct.pack('>BI', 0xc6, len(value)) + value
    head = bytes([0x90 + len(value)]) if len(value) < 16 else struct.pack('>BH', 0xdc, len(value))
    return head + b''.join(map(pack, value))


def unpack(blob, at=0):
    """The value at `at`, and where the next one is."""
    tag = blob[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xe0:
        return tag - 256, at
    fixed = {0xc0: None, 0xc2: False, 0xc3: True}
    if tag in fixed:
        return fixed[tag], at
    numbers = {0xcc: '>B', 0xcd: '>H', 0xce: '>I', 0xcf: '>Q', 0xd0: '>b', 0xd1: '>h', 0xd2: '>i',
               0xd3: '>q'}
    if tag in numbers:
        return struct.unpack_from(numbers[tag], blob, at)[0], at + struct.calcsize(numbers[tag])
    lengths = {0xd9: '>B', 0xda: '>H', 0xdb: '>I', 0xc4: '>B', 0xc5: '>H', 0xdc: '>H', 0xdd: '>I'}
    if 0x90 <= tag < 0xa0:
        count, kind = tag & 15, 'array'
    elif 0xa0 <= tag < 0xc0:
        count, kind = tag & 31, 'text'
    else:
        count = struct.unpack_from(lengths[tag], blob, at)[0]
        at += struct.calcsize(lengths[tag])
        kind = 'array' if tag >= 0xdc else 'text'
    if kind == 'text':
        return bytes(blob[at:at + count]), at + count
    found = []
    for _ in range(count):
        value, at = unpack(blob, at)
        found.append(value)
    return found, at


def frame(kind, control, request=1, payload=b'', version=1):
    body = pack(control)
    head = struct.pack('<IHBBIII', 20 + len(body) + len(payload), kind, version, 0, request,
                       len(body), 0) + bytes(4)
    crc = crc32c(head + body)
    return head[:16] + struct.pack('<I', crc) + head[20:] + body + payload


class Raw:
    """A connection of bare frames."""

    def __init__(self, server, hello=True, receive_bytes=None, source=None):
        self.socket = socket.socket()
        if source:
            self.socket.bind((source, 0))
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(WAIT_S)
        self.socket.connect((server.host, server.port))
        on_end(self.socket.close)
        self.request = 0
        if hello:
            self.call(HELLO, [1, 1, 'probe', -1])

    def send(self, kind, control, payload=b''):
        self.request += 1
        self.socket.sendall(frame(kind, control, self.request, payload))

    def read(self, count):
        blob = b''
        while len(blob) < count:
            piece = self.socket.recv(min(count - len(blob), 1 << 20))
            if not piece:
                raise EOFError
            blob += piece
        return blob

    def answer(self):
        """(flags, control, payload)"""
        head = self.read(24)
        length, _, _, flags, _, control = struct.unpack_from('<IHBBII', head)
        rest = self.read(length - 20)
        return flags, unpack(rest[:control])[0], rest[control:]

    def call(self, kind, control, payload=b''):
        self.send(kind, control, payload)
        return self.answer()

    def closed(self):
        """Whether the server closes it (what it says before does not count)."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except (ConnectionError, EOFError):
            pass
        except socket.timeout:
            return False
        return True


def reader_that_takes_nothing(server, connection, request, others_are_served):
    """Ask again and again where no answer is read: the server's memory stays bounded, others are served
    meanwhile, and its node log says who takes nothing."""
    before = server.memory_bytes()
    connection.settimeout(2)
    asked = 0
    try:
        while asked < 4000:
            connection.sendall(request)
            asked += 1
    except (socket.timeout, ConnectionError):
        pass  # it is not read from any more
    others_are_served()
    grown = server.memory_bytes() - before
    check(grown < 100 << 20, f'memory for a reader that reads nothing, {asked} requests', grown)
    server.node_log_wait(r'has taken nothing for|does not take its answers|takes its answers too slowly')


# ---- running tests ----

def main(at_once=AT_ONCE):
    """Each test, or those named on the command line. As they mostly wait, so many do so beside each other: each in a process of its
    own, as what it starts, what it leaves behind and what is cleaned up is its process's."""
    frame_of_caller = inspect.currentframe().f_back
    tests = {name: value for name, value in frame_of_caller.f_globals.items() if name.startswith('test_') and callable(value)}
    names = [name for name in tests if not sys.argv[1:] or name in sys.argv[1:]]
    if min(at_once, len(names)) > 1:
        failed = _run_beside(frame_of_caller.f_code.co_filename, names, at_once)
    else:
        failed = sum(not _run(name, tests[name]) for name in names)
    sys.exit(1 if failed else 0)


def _run(name, function):
    begun, passed = time.monotonic(), True
    try:
        function()
        result = 'ok'
    except Skipped as reason:
        result = f'SKIPPED ({reason})'
    except Exception as error:
        passed, result = False, 'NOT OK'
        if not isinstance(error, Failure):
            traceback.print_exc(file=sys.stdout)
        else:
            where = traceback.extract_tb(error.__traceback__)
            lines = [f'{os.path.basename(f.filename)}:{f.lineno}' for f in where]
            print(f'  at {" ".join(lines)}\n  {error}')
    finally:
        _clean()
    print(f'{result} {name} ({time.monotonic() - begun:.1f} s)', flush=True)
    return passed


def _run_beside(file, names, at_once):
    """How many failed. What each said is printed when it has ended, as a whole."""
    waiting, failed, said = list(names), 0, {}
    with selectors.DefaultSelector() as running:
        while waiting or said:
            while waiting and len(said) < at_once:
                process = tied.start([sys.executable, '-B', file, waiting.pop(0)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                said[process] = []
                running.register(process.stdout, selectors.EVENT_READ, process)
            for key, _ in running.select():
                piece = os.read(key.fd, 1 << 16)
                said[key.data].append(piece)
                if not piece:
                    running.unregister(key.fileobj)
                    failed += _ended(key.data, b''.join(said.pop(key.data)))
    return failed


def _ended(process, said):
    """Whether it failed, also without having said so."""
    process.stdout.close()
    code = process.wait()
    print(said.decode(errors='replace'), end='')
    if code and not re.search(rb'^NOT OK ', said, re.M):
        print(f'NOT OK {process.args[-1]} (its process ended with {code})')
    sys.stdout.flush()
    return bool(code)
