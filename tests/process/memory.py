# SPDX-License-Identifier: Apache-2.0
"""--memory bounds the process: resident memory stays within 1.1 times the budget and 32 MiB, whatever 10,000 clients
do at once, and an honest producer goes on meanwhile."""
import os
import re
import resource
import struct
import subprocess
import sys
import threading
import time

from cluster import Cluster
from kafka_wire import Out
from rawbatch import batch_of, compressed, varint
from rig import FETCH, HELLO, LEAT, LOCATE, METADATA, PING, WAIT_S, Raw, Server, check, equal, frame, line_read, main, on_end, process_end, until
from strangers import ATTACH, VERSION, hello as link_hello
import tied

MIB = 1 << 20
APPEND, CLUSTER_STATUS, GROUP_COMMIT, GROUP_FETCH = 8, 18, 14, 15
PROCESSES = 4
CONNECTIONS = 10000
WRITERS = 7  # nodes beside three voters
# So long all of it goes on at least, from when all of them are there, and until newcomers are served meanwhile.
ATTACK_S = float(os.environ.get('LEAT_MEMORY_S', '14'))

# Each connection has one of the ways, by its number. First all of them say who they are, and are answered: so they are all
# there at once. Then, from one line of standard input to the next, each sends some bytes, and others again and again, as many
# as its way sends at most; none reads what it is answered. Who is closed, or rings, comes again. few: so many of each process.
# Each process has addresses of its own.
CROWD = r"""
import resource, select, selectors, socket, sys, time
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
count, path, network, addresses = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
AT_ONCE = 200  # less than what waits to be accepted may be
AGAIN = 5  # in 20 ms: a thousand a second come again in all, which is not yet a flood that fills the processor
ways = []
for line in open(path):
    port, hello, first, again, most, few, rings = line.split(',')
    way = int(port), bytes.fromhex(hello), bytes.fromhex(first), bytes.fromhex(again), int(most), int(few), rings.strip() == '1'
    ways += [way] * max(1, int(few))
many = [way for way in ways if not way[5]]
poll = selectors.EpollSelector()
opened = closed = refused = 0
went = False

class Conn:
    def __init__(self, number):
        global opened
        self.number = number
        way = ways[number] if number < len(ways) else many[number % len(many)]
        port, hello, self.first, self.again, self.most, _, self.rings = way
        self.left, self.here = (hello + self.first if went else hello), went
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setblocking(False)
        host = number % addresses
        self.socket.bind((f'127.{network}.{host // 250}.{host % 250 + 1}', 0))
        try:
            self.socket.connect(('127.0.0.1', port))
        except BlockingIOError:
            pass
        opened += 1
        poll.register(self.socket, selectors.EVENT_WRITE, self)
    def end(self):
        global closed
        closed += 1
        poll.unregister(self.socket)
        self.socket.close()
    def go(self):
        self.left = self.first
        poll._selector.modify(self.socket, select.EPOLLOUT)
    def answered(self):
        try:
            self.here = self.socket.recv(4096) != b''
        except BlockingIOError:
            return True
        except OSError:
            return False
        if self.here:
            poll._selector.modify(self.socket, select.EPOLLRDHUP)
        return self.here
    def write(self):
        # False: it is closed, or rings.
        if not self.left and not self.here:  # it says nothing first
            self.here = True
            poll._selector.modify(self.socket, select.EPOLLRDHUP)
            return True
        if not self.left:
            return False
        try:
            sent = self.socket.send(self.left[:65536])
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.left = self.left[sent:]
        if not self.here:
            if not self.left:
                poll.modify(self.socket, selectors.EVENT_READ, self)
            return True
        self.most -= sent
        if not self.left and self.most > 0:
            self.left = self.again
        if not self.left and not self.rings:
            poll._selector.modify(self.socket, select.EPOLLRDHUP)  # all is sent; its end alone is of interest
        return bool(self.left) or not self.rings

conns, waiting = set(), list(range(count))
begun = set()
while waiting or begun:
    while waiting and len(begun) < AT_ONCE:
        begun.add(Conn(waiting.pop()))
    for key, events in poll.select(0.02):
        conn = key.data
        if conn.answered() if events & selectors.EVENT_READ else conn.write():
            if conn.here:
                begun.discard(conn)
                conns.add(conn)
            continue
        conn.end()
        refused += 1
        begun.discard(conn)
        conns.discard(conn)
print('here', len(conns), 'refused', refused, flush=True)
waiting = list(set(range(count)) - {conn.number for conn in conns})
sys.stdin.readline()
went = True
for conn in conns:
    conn.go()
again_s = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    if time.monotonic() >= again_s:
        again_s = time.monotonic() + 0.02
        for _ in range(min(AGAIN, len(waiting))):
            conns.add(Conn(waiting.pop()))
    for key, events in poll.select(0.02):
        conn = key.data
        if not conn.write():
            conn.end()
            conns.discard(conn)
            waiting.insert(0, conn.number)
print('opened', opened, 'closed', closed, 'held', len(conns), flush=True)
sys.stdin.readline()
sys.stdin.read()
"""


def kafka(key, version, out):
    head = struct.pack('>hhih', key, version, 7, 4) + b'evil'
    return struct.pack('>i', len(head + out.bytes)) + head + out.bytes


def large_batch():
    """15 MiB in 21 KB, by zstd with a window of 8 MiB: nearly all of the memory that a check may touch."""
    made = 15 * MIB
    start = varint(made) + b'\0\0\0\1' + varint(made - 9)
    raw, left = os.urandom(20 * 1024), made - 8 - 20 * 1024
    blocks = [(0, len(start), start), (0, len(raw), raw)]
    while left:
        blocks.append((1, min(left, 128 * 1024), b'\0'))
        left -= blocks[-1][1]
    body = b'\x28\xb5\x2f\xfd\0\x68'
    for kind, size, content in blocks:
        body += struct.pack('<I', kind << 1 | size << 3)[:3] + content
    return compressed(batch_of([(1700000000000, None, b'')]), 4, body + struct.pack('<I', 1)[:3])


def stored(server):
    """Logs that are read and written: [id, [(streamlet, log, epoch)]] of old data, of those that batches go to, and of some that stay empty."""
    server.leat('bench', 'append', '--stream', 'old', '--logs', 1, '--durability', 'memory', '--producers', 1,
                '--records', 800_000, '--json', '-', timeout=120)
    for name in 'packed', 'quiet':
        server.leat('stream', 'create', name, '--streamlets', 16, '--logs', 1)
    names = ['old', 'packed', 'quiet']
    _, (_, _, streams, *_), _ = Raw(server).call(METADATA, [names, False])
    equal(len(streams), len(names), streams)
    return {name: (row[2], [(log[0], log[1], log[3]) for log in row[4]]) for name, row in zip(names, streams)}


def heavy_ways(way, port, kafka_port, streams):
    """Each takes much of another part of the budget, by many connections."""
    old, (place,) = streams['old']
    packed, logs = streams['packed']
    half = frame(PING, [], payload=bytes(8 * MIB - 100))[:200000]  # with the first read
    way(port, half, bytes(65536), 7 * MIB, few=16)  # frames that are never whole
    produce = struct.pack('>ihhih', 8 * MIB - 100, 0, 3, 7, 4) + b'evil' + bytes(4096)
    way(kafka_port, produce, bytes(65536), 7 * MIB, few=8)
    quiet, empty = streams['quiet']
    waits = frame(FETCH, [MIB, MIB, 60000, [[quiet, *log, 0] for log in empty]])
    way(port, waits, waits, 256 * len(waits), few=12)
    way(port, waits * 4, most=0, few=25, rings=True)  # gone before it is answered
    asked = Out(False).i('iiiib', -1, 5000, MIB, MIB, 0)
    asked.array(['quiet'], lambda name: asked.run(name).array(range(16), lambda n: asked.i('iqi', n, 0, MIB)))
    waits = kafka(1, 4, asked)
    way(kafka_port, waits * 4, most=0, few=25, rings=True)
    way(kafka_port, waits, waits, 256 * len(waits), few=12)  # as many requests of Kafka as a core has structs for
    looks = frame(LOCATE, [[[old, *place[:2], what, 1] for what in (1, 2)] * 500])
    way(port, looks, looks, 64 * MIB, few=12)  # calls that are under way for long
    reads = frame(FETCH, [1, 4 * MIB, 0, [[old, *place, 0]]])  # bytes that have left memory
    way(port, reads, reads, 200 * len(reads), few=12)
    batch = large_batch()
    for n, log in enumerate(logs):  # most of them on another core than the connection's
        append = frame(APPEND, [packed, *log, 1], payload=batch)
        way(port, append, append, 40 * len(append), few=1 + n % 2)
    plain = batch_of([(1700000000000, None, bytes(MIB))])
    append = frame(APPEND, [packed, *logs[0], 1], payload=plain)
    way(port, append, append, 64 * MIB, few=4)
    for group in range(16):
        join = Out(False).run(f'heavy-{group}').i('ii', 6000, 6000).run('').run('consumer')
        join.array(range(2), lambda n, join=join: join.run(f'range{n}').run(b'm' * 20000, True))
        way(kafka_port, kafka(11, 1, join), most=0, few=2)


def ways(port, kafka_port, path, streams, node_port=None):
    """What connections send. few: so many of each process."""
    hellos = {port: frame(HELLO, [1, 1, 'crowd', -1]), kafka_port: kafka(18, 0, Out(False)), node_port: b''}
    unknown = [f'n{i}-'.ljust(240, 'x') for i in range(512)]
    lines = []

    def way(port, first, again=b'', most=6000, few=0, rings=False):
        lines.append(f'{port},{hellos[port].hex()},{first.hex()},{(again or first).hex()},{most},{int(few)},{int(rings)}')
    # A few send much.
    metadata = frame(METADATA, [unknown, False])
    way(port, metadata, metadata, 64 * MIB, few=16)  # answers of 200 KiB
    topics = Out(False)
    asked = kafka(3, 1, topics.array([name[:200] for name in unknown], topics.run))
    way(kafka_port, asked, asked, 64 * MIB, few=8)
    commit = frame(GROUP_COMMIT, ['set', 'member', 1, [[1, 0, 0, 0, 1]] * 2000])
    way(port, commit, commit, 64 * MIB, few=4)  # copies of bodies
    offsets = frame(GROUP_FETCH, ['set', [[1, 0, i] for i in range(2000)]])
    way(port, offsets, offsets, 64 * MIB, few=4)
    wanted = frame(METADATA, [[f'made-{i}-{os.getpid()}' for i in range(1000)], True])
    way(port, wanted, wanted, 64 * MIB, few=1)  # streams that are made by asking
    made = Out(False)
    asked = kafka(3, 4, made.array([f'kafka-made-{i}' for i in range(1000)], made.run).i('?', True))
    way(kafka_port, asked, asked, 64 * MIB, few=1)
    heavy_ways(way, port, kafka_port, streams)
    # Thousands send little that asks for much.
    everything = frame(METADATA, [[], False]) * 20
    way(port, everything, everything)  # all streams
    topics = kafka(3, 1, Out(False).array(None, None)) * 20
    way(kafka_port, topics, topics)
    pings = frame(PING, []) * 20
    way(port, pings, pings)
    status = frame(CLUSTER_STATUS, []) * 20
    way(port, status, status)
    for group in range(4):
        join = Out(False).run(f'group-{group}').i('ii', 6000, 6000).run('').run('consumer')
        join.array(range(2), lambda n, join=join: join.run(f'range{n}').run(b'm' * 2000, True))
        way(kafka_port, kafka(11, 1, join), most=0)
    way(port, frame(PING, []), most=0, few=25, rings=True)
    way(kafka_port, kafka(18, 0, Out(False)), most=0, few=25, rings=True)
    if node_port:  # who invents a node, and memory of its own with this one
        for half in 0, 10:
            for n in range(8):
                invented = link_hello(f'ghost{n}', n + 1) + frame(ATTACH, [], version=VERSION)
                way(node_port, invented[:len(invented) - half], most=0, few=8, rings=not half)
    with open(path, 'w') as file:
        file.write('\n'.join(lines))


def resident_bytes(server):
    """All that is its own and resident, with the whole of its pool's and its replicas' files."""
    process = server.process
    found = dict(re.findall(r'(RssAnon|RssFile|RssShmem):\s+(\d+) kB', server.proc('status'))) if process else {}
    if not found:
        return 0  # it has ended: who asks next says so
    # Other nodes' memory for replicas is mapped as well, where this one writes into it by shared memory: that is theirs.
    own = os.path.basename(server.pool).replace('leat-pool-', 'leat-rmem-')
    with open(f'/proc/{process.pid}/maps') as maps:
        files = set(re.findall(r'(/\S*/leat-rmem-\S+)$', maps.read(), re.M))
    shared = 0
    for path in [server.pool, *(f for f in files if os.path.basename(f).startswith(own))]:
        try:
            shared += os.stat(path).st_blocks * 512
        except FileNotFoundError:
            pass
    return (int(found['RssAnon']) + int(found['RssFile'])) * 1024 + shared


def files_open(server):
    process = server.process
    try:
        return len(os.listdir(f'/proc/{process.pid}/fd')) if process else 0
    except FileNotFoundError:
        return 0  # as above


class Watch:
    """The highest that each server had; of files the first, to which the crowd connects."""

    def __init__(self, servers):
        self.servers, self.over = servers, threading.Event()
        self.peaks, self.files = [resident_bytes(s) for s in servers], 0
        self.thread = threading.Thread(target=self.run, daemon=True)  # a test that fails ends all the same
        self.thread.start()

    def run(self):
        while not self.over.wait(0.1):  # a peak gives no event: it is looked for
            for i, server in enumerate(self.servers):
                self.peaks[i] = max(self.peaks[i], resident_bytes(server))
            self.files = max(self.files, files_open(self.servers[0]))

    def end(self):
        self.over.set()
        self.thread.join()


def crowd(path, addresses):
    """All of them are there, or were refused once: (processes, how many are there)."""
    # With fewer files the server refuses most of them, and the bounds would be kept without a crowd.
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    check(files - min(files // 8, 4608) >= CONNECTIONS + 100, f'files for {CONNECTIONS} connections (ulimit -Hn)', files)
    processes = []
    for number in range(PROCESSES):
        process = tied.start([sys.executable, '-c', CROWD, str(CONNECTIONS // PROCESSES), path, str(number + 1), str(addresses)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        on_end(lambda process=process: process_end(process))
        processes.append(process)
    said = [line_read(process.stdout) for process in processes]
    return processes, sum(int(re.match(r'here (\d+) ', text).group(1)) for text in said)


def crowd_tell(processes):
    """To begin, and to end."""
    for process in processes:
        process.stdin.write(b'\n')
        process.stdin.flush()


def crowd_end(processes, watch):
    """What they said. A bound means nothing if the crowd was not there."""
    crowd_tell(processes)
    said = [line_read(p.stdout).strip() for p in processes]
    for process in processes:
        process_end(process)
    counts = [re.fullmatch(r'opened (\d+) closed \d+ held \d+', text) for text in said]
    check(all(counts), 'each process of the crowd stays to its end', said)
    opened = sum(int(c.group(1)) for c in counts)
    check(opened >= CONNECTIONS, f'{CONNECTIONS} clients came', opened, said)
    return f'at most {watch.files} files, {" ".join(said)}'


def bound(memory_mib):
    return memory_mib * MIB * 11 // 10 + 32 * MIB


class Honest:
    """A producer that was there before the crowd, and others that come while it is."""

    def __init__(self, environment):
        self.environment, self.done = environment, []
        self.process = tied.start([LEAT, 'produce', 'honest'], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        on_end(lambda: process_end(self.process))
        self.write('steady')

    def write(self, line):
        self.process.stdin.write(f'{line}\n'.encode())
        self.process.stdin.flush()
        self.done.append(line)

    def go(self, newcomers):
        """Returns how many newcomers had theirs acknowledged; of so many at least, unless they are never served."""
        begun_s, number, came = time.monotonic(), 0, 0
        while (now_s := time.monotonic() - begun_s) < (ATTACK_S if came >= newcomers else WAIT_S):
            number += 1
            self.write(f's{number}')
            if not newcomers:
                threading.Event().wait(0.2)
                continue
            try:
                said = tied.run([LEAT, 'produce', 'honest'], input=f'r{number}\n'.encode(), capture_output=True,
                                timeout=WAIT_S - now_s, env=self.environment)
                if said.returncode == 0:
                    self.done.append(f'r{number}')
                    came += 1
            except subprocess.TimeoutExpired:
                pass
        self.process.stdin.close()
        equal(self.process.wait(WAIT_S), 0, 'all that the steady producer sent is acknowledged')
        return came


def kafka_port(server):
    return int(server.node_log_wait(r'clients of Kafka: listening on (\S+):(\d+)').group(2))


def within(server, memory_mib, peak, what):
    check(peak <= bound(memory_mib), f'{what}: resident memory with --memory {memory_mib}M, at most '
          f'{bound(memory_mib) // MIB} MiB', f'{peak / MIB:.0f} MiB')


def least_mib(cores):
    """The least budget of so many cores, as a refusal names it."""
    code, text = Server('--cores', str(cores)).start_refused('--memory', '1M')
    equal(code, 2, text)
    return int(re.search(r'need(?:s)? at least (\d+) MiB', text).group(1))


def alone(memory_mib, cores=2, addresses=1, least=CONNECTIONS):
    """least: so many of the crowd are there at once, of so many addresses of each process."""
    server = Server('--memory', f'{memory_mib}M', '--cores', str(cores), '--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 'honest')
    path = os.path.join(server.home, 'ways')
    ways(server.port, kafka_port(server), path, stored(server))
    honest = Honest(server.environment())
    until(lambda: server.values('honest') == ['steady'], 'the producer is served')
    watch = Watch([server])
    processes, here = crowd(path, addresses)
    check(here >= least and files_open(server) >= here, f'{least} of {CONNECTIONS} clients are there at once', here, files_open(server))
    if here < CONNECTIONS:
        server.node_log_wait('refused: what the memory budget leaves for connections is taken')
    crowd_tell(processes)
    # Who has as many addresses as connections leaves newcomers no place where there is memory for no more.
    newcomers = 1 if here == CONNECTIONS or addresses == 1 else 0
    came = honest.go(newcomers)
    said = crowd_end(processes, watch)
    until(lambda: server.status()['connections'] < 100, 'connections are given back')
    watch.end()
    after = resident_bytes(server)
    print(f'  {cores} cores, {memory_mib} MiB, {addresses * PROCESSES} addresses: {here} at once, peak {watch.peaks[0] / MIB:.0f} '
          f'of {bound(memory_mib) // MIB} MiB, after {after / MIB:.0f} MiB, {came} newcomers served, {said}')
    server.produce('honest', ['last'])
    check(set(honest.done + ['last']) <= set(server.values('honest')), 'what was acknowledged is read', honest.done)
    within(server, memory_mib, watch.peaks[0], 'during')
    within(server, memory_mib, after, 'after')
    check(came >= newcomers, 'newcomers are served', came)


def test_resident_memory_of_the_least_budget_of_two_cores():
    alone(least_mib(2), least=4000)


def test_resident_memory_of_the_least_budget_of_eight_cores():
    alone(least_mib(8), cores=8, addresses=CONNECTIONS // PROCESSES, least=1400)


def test_resident_memory_of_a_larger_budget():
    alone(1024, addresses=25)


def test_no_more_cores_serve_than_the_budget_has_room_for():
    """Where nobody said how many; where somebody did, it is refused by name."""
    least = least_mib(2)
    code, text = Server('--cores', '2').start_refused('--memory', f'{least - 1}M')
    equal(code, 2)
    check(f'2 cores need at least {least} MiB (--memory)' in text, text)
    check('(fewer need less: --cores)' in text, text)
    if len(os.sched_getaffinity(0)) == 1:
        return
    server = Server()
    server.command = lambda extra=(): [w for w in Server.command(server, extra) if w not in ('--cores', '2')]
    server.start('--memory', f'{least - 1}M', '--kafka', 'off')
    check(', 1 core' in server.ready, server.ready)
    server.node_log_wait(rf'1 core of \d+: a memory budget of {least - 1} MiB has room for no more')


def test_resident_memory_of_nodes_that_copy_for_each_other():
    cluster = Cluster(memory='256M', kafka='127.0.0.1:0').start()
    cluster.leat('stream', 'create', 'honest', '--copies', 3)
    environment = dict(os.environ, LEAT_BROKERS=cluster.brokers())
    path = os.path.join(cluster.nodes[0].home, 'ways')
    ways(cluster.client_ports[0], kafka_port(cluster.nodes[0]), path, stored(cluster.nodes[0]), cluster.node_ports[0])
    honest = Honest(environment)
    until(lambda: cluster.consume('honest') == ['steady'], 'the producer is served')
    watch = Watch(cluster.nodes)
    processes, here = crowd(path, 50)
    check(here >= 4000, 'clients are there at once', here)
    crowd_tell(processes)
    came = honest.go(1)
    said = crowd_end(processes, watch)
    watch.end()
    print(f'  3 nodes of 256 MiB: {here} at once, peaks {[round(p / MIB) for p in watch.peaks]} of {bound(256) // MIB} MiB, '
          f'{came} newcomers served, {said}')
    for node, peak in zip(cluster.nodes, watch.peaks):
        within(node, 256, peak, 'a node')
    cluster.produce('honest', ['last'])
    found = cluster.consume('honest')
    check(set(honest.done + ['last']) <= set(found), 'what was acknowledged is read', honest.done)


def test_resident_memory_beside_more_nodes_than_there_is_memory_for_copies_of():
    """All have the cluster's key, and write copies to each other; then as many of other names come in their place, which nobody
    has met. A node has memory for copies of two: who comes later is told what helps."""
    cluster = Cluster(nodes=3 + WRITERS, memory='256M').start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3 + WRITERS, '--logs', 1, '--copies', 3, '--durability', 'memory')
    voters, ghosts = cluster.nodes[:3], cluster.nodes[3:]
    watch = Watch(voters)
    lines = b''.join(b'%0999d\n' % n for n in range(16 * 1024))
    for streamlet in range(3 + WRITERS):  # where an owner finds too few copies it refuses
        cluster.leat('produce', 's', '--streamlet', streamlet, '--timeout', '3s', input=lines, code=None)
    for node in ghosts:
        node.kill()
    others = [cluster.node(3 + i, node=f'other{i}') for i in range(WRITERS)]
    for node in others:
        node.launch()
    for node in others:
        node.ready_wait()
    told = re.compile(r'node other\d+ cannot be attached: the \d+ MiB for replicas of other nodes are taken')
    until(lambda: max(watch.peaks) > bound(256) or any(told.search(node.node_log()) for node in voters + others),
          'who finds no memory says so')
    until(lambda: {n['name'] for n in cluster.status(which=[0])['nodes'] if n['state'] == 'up'} >= {f'other{i}' for i in range(WRITERS)},
          'all of them are of the cluster')
    watch.end()
    print(f'  3 voters of 256 MiB beside {WRITERS} nodes and {WRITERS} others: peaks {[round(p / MIB) for p in watch.peaks]} of '
          f'{bound(256) // MIB} MiB')
    for peak in watch.peaks:
        within(None, 256, peak, 'a node')


if __name__ == '__main__':
    main()
