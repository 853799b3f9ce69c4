# SPDX-License-Identifier: Apache-2.0
"""More that fails than a cluster is made for: what can go on goes on, what can't is named with what is missing,
and comes back by itself when the nodes come back.
"""
import errno
import json
import os
import re
import shutil
import signal

import leftovers
from cluster import PATIENT, Cluster, free_ports
from limits import mounted
from rig import Failure, Server, WAIT_S, check, check_in, equal, main, until


def logs(cluster, stream, which=()):
    """By (streamlet, log): the names of its owner and of all nodes that have its last segment, and its state."""
    told = json.loads(cluster.leat('stream', 'describe', stream, '--json', which=which).stdout)
    out = {}
    for log in told['log_list']:
        last = log['segment_list'][-1] if log['segment_list'] else {'copies': []}
        out[(log['streamlet'], log['log'])] = {
            'nodes': {log['node']} | {c['node'] for c in last['copies']}, 'state': log['state'],
            'end': log['end_offset']}
    return out


def names(indices):
    return {f'n{i}' for i in indices}


def kill_at_once(cluster, indices=None):
    """Stopped first: between one kill and the next, recovery would have saved what lies on these nodes alone."""
    nodes = [cluster.nodes[i] for i in indices or range(len(cluster.nodes))]
    for node in nodes:
        os.kill(node.process.pid, signal.SIGSTOP)
    for node in nodes:
        node.kill()


def fully_replicated(cluster, which=()):
    status = cluster.status(which=which)
    reports = [n['report'] for n in status['nodes'] if n['state'] == 'up']
    return not status['recovery']['waiting'] and all(
        r and r['logs_under_replicated'] == 0 and r['segments_under_replicated'] == 0 for r in reports)


def test_a_node_that_is_up_and_not_heard_is_trouble():
    """What its logs lack nobody knows: that is not well."""
    cluster = Cluster(suspect_ms='60000', confirm_ms='1000').start()

    def all_are_up():  # a cluster in which a node has not come up yet may be well, too
        nodes = cluster.status(which=[0], code=None)['nodes']
        return len(nodes) == 3 and all(node['state'] == 'up' and node['report'] for node in nodes)

    until(all_are_up, 'all three are up')
    cluster.nodes[2].stand_still()
    shown = cluster.leat('cluster', 'status', which=[0], code=1).stdout.decode()
    check(re.search(r'^trouble  node n2 is up and was not heard, so what its logs lack is not known: .', shown, re.M), shown)
    status = cluster.status(which=[0], code=1)
    node = next(n for n in status['nodes'] if n['name'] == 'n2')
    equal((status['healthy'], node['state'], node['report']), (False, 'up', None))
    check(node['report_missing'], node)
    os.kill(cluster.nodes[2].process.pid, signal.SIGCONT)
    until(lambda: cluster.leat('cluster', 'status', which=[0], code=None).returncode == 0, 'it is heard again')


def test_without_a_majority_healthy_logs_go_on_and_changes_wait():
    # Patient: a node that stood still for longer serves again only when a leader has said that it is up.
    cluster = Cluster(nodes=4, voters=3, memory='512M', suspect_ms='5000', confirm_ms='1000').start()
    cluster.leat('stream', 'create', 's', '--streamlets', 24, '--logs', 1, '--copies', 2, '--min-copies', 2,
                 '--durability', 'memory')
    for partition in range(24):
        cluster.produce('s', [f'{partition} first'], '--streamlet', partition)
    dead, left = [0, 1], [2, 3]
    for i in left:  # a node hands out producer ids from a block of 1000 that it got while there was a majority
        cluster.produce('s', [f'0 by {i}'], '--streamlet', 0, which=[i])
    until(lambda: fully_replicated(cluster), 'no copy is being made elsewhere')
    healthy = [at for at, log in logs(cluster, 's').items() if log['nodes'] <= names(left)]
    check(healthy, 'chance put no log on these two', logs(cluster, 's'))
    kill_at_once(cluster, dead)
    for streamlet, _ in healthy:
        cluster.produce('s', [f'{streamlet} second'], '--streamlet', streamlet, which=left)
    status = cluster.leat('cluster', 'status', which=left, code=1).stdout.decode()
    check_in('no majority: 1 of 3 voters', status)
    check('node replace' not in status, 'nobody has lost a disk', status)  # only their processes
    change = cluster.leat_start('stream', 'create', 'later', which=left)
    for streamlet, _ in healthy:
        cluster.produce('s', [f'{streamlet} third'], '--streamlet', streamlet, which=left)
    equal(change.poll(), None, 'a change waits')
    check_in('still waiting (changes wait while coordinators lack a majority)', change.stderr.readline().decode())
    cluster.nodes[0].start()
    equal(change.wait(WAIT_S), 0, change.stderr.read())
    cluster.nodes[1].start()
    until(lambda: fully_replicated(cluster), 'all is as it was')
    wanted = [f'{i} first' for i in range(24)] + [f'0 by {i}' for i in left] + [f'{s} {t}' for s, _ in healthy for t in ('second', 'third')]
    equal(sorted(cluster.consume('s')), sorted(wanted))


def test_a_change_without_a_majority_is_given_up_after_half_a_minute():
    cluster = Cluster(nodes=3, voters=3, memory='256M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1)
    kill_at_once(cluster, [0, 1])
    asked = [('stream', 'create', 't'), ('stream', 'delete', 's'), ('node', 'drain', 'n0'), ('node', 'replace', 'n0')]
    changes = [cluster.leat_start(*words, which=[2]) for words in asked]
    for words, change in zip(asked, changes):
        _, said = change.communicate(timeout=45)  # half a minute, or what was asked again ends a little later
        equal(change.returncode, 1 if words[0] == 'node' and words[1] == 'replace' else 3, said)
        # Why, and what helps: which voters are away the node knows.
        check_in('the cluster has no leader: 1 of 3 voters answer, and it needs 2; start', said.decode())
        for away in cluster.node_ports[:2]:
            check_in(f'127.0.0.1:{away}', said.decode())


def test_a_node_without_a_majority_says_so_to_producers_and_of_its_logs():
    cluster = Cluster(nodes=3, voters=3, memory='256M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--copies', 3)
    own = next(log['streamlet'] for log in described(cluster, 's') if log['node'] == 'n2')
    cluster.produce('s', ['first'], '--streamlet', own, which=[0])  # n2 has given out no ids yet
    kill_at_once(cluster, [0, 1])
    log = until(lambda: next((log for log in json.loads(cluster.leat('stream', 'describe', 's', '--json', which=[2]).stdout)['log_list']
                              if log['streamlet'] == own and log['state'] == 'unknown'), None), 'its state is not known')
    check_in('this node does not know whether it is still up', log['text'])
    done = cluster.leat('produce', 's', '--streamlet', own, '--timeout', '5s', which=[2], input=b'second\n', code=None)
    check_in('the cluster has no leader: 1 of 3 voters answer, and it needs 2; start', done.stderr.decode())


def test_logs_with_more_failures_than_copies_are_named_and_come_back():
    cluster = Cluster(nodes=4, voters=3, memory='512M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 24, '--logs', 1, '--copies', 2, '--durability', 'memory')
    lines = [f'{i:05d}' for i in range(24)]
    for streamlet, line in enumerate(lines):
        cluster.produce('s', [line], '--streamlet', streamlet)
    # A voter and the node that is none: a majority is left, and the logs that only these two have are not.
    dead, left = [2, 3], [0, 1]
    until(lambda: fully_replicated(cluster), 'no copy is being made elsewhere')
    told = logs(cluster, 's')
    missing = sorted(at for at, log in told.items() if log['nodes'] <= names(dead))
    check(missing, 'chance put no log on these two', told)
    kill_at_once(cluster, dead)
    rows = []

    def named():
        rows[:] = cluster.status(which=left)['recovery']['waiting_logs']
        return sorted((row['streamlet'], row['log']) for row in rows) == missing
    try:
        until(named, 'what is missing is named')
    except Failure as failure:
        raise Failure(f'{failure}: {missing}, not {rows}\n{cluster.status(which=left)}') from None
    check('no open segment' in rows[0]['why'], rows[0])
    # Nothing is given up while they may come back; the others go on.
    streamlet, log = missing[0]
    done = cluster.leat('log', 'recover', 's', '--streamlet', streamlet, '--log', log, '--accept-loss', which=left,
                        code=1)
    check('n2' in done.stderr.decode() or 'n3' in done.stderr.decode(), done.stderr)
    whole = [at for at in told if at not in missing]
    for streamlet, _ in whole[:3]:
        cluster.produce('s', [f'{streamlet} more'], '--streamlet', streamlet, which=left)
    for i in dead:
        cluster.nodes[i].start()
    until(lambda: fully_replicated(cluster), 'they come back by themselves')
    equal(sorted(cluster.consume('s')), sorted(lines + [f'{s} more' for s, _ in whole[:3]]))


def test_a_log_whose_owner_came_back_without_it_is_named_with_its_node():
    """Its memory is lost, so it waits for the other node that has a copy, and belongs to nobody that is up."""
    cluster = Cluster(nodes=4, voters=3, memory='512M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 24, '--logs', 1, '--copies', 2, '--durability', 'memory')
    for streamlet in range(24):
        cluster.produce('s', [f'{streamlet}'], '--streamlet', streamlet)
    until(lambda: fully_replicated(cluster), 'no copy is being made elsewhere')
    owners = {log['streamlet']: log['node'] for log in described(cluster, 's')}
    (streamlet, log), nodes = next((at, log['nodes']) for at, log in logs(cluster, 's').items() if owners[at[0]] == 'n3')
    other = int(min(nodes - {'n3'})[1:])  # chance chose it
    left = [min({0, 1, 2} - {other})]
    kill_at_once(cluster, [other, 3])
    for path in leftovers.pools(cluster.nodes[3].home):
        os.unlink(path)
    until(lambda: any(n['name'] == 'n3' and n['state'] == 'down' for n in cluster.status(which=left)['nodes']), 'it is missed')
    cluster.nodes[3].start()
    recover = 'log', 'recover', 's', '--streamlet', streamlet, '--log', log, '--accept-loss'
    wanted = 'nobody serves it now: it was with node n3 as it was before its last start'
    until(lambda: wanted in cluster.leat(*recover, which=left, code=None).stderr.decode(), f'it is refused with: {wanted}')


def test_lost_copies_are_made_again_until_every_log_is_whole():
    """A node that does not come back: its copies are made elsewhere, also of closed segments."""
    cluster = Cluster(nodes=4, voters=3, memory='512M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 4, '--logs', 1, '--copies', 3, '--durability', 'memory',
                 '--segment-bytes', '64K')
    lines = [f'{i:06d} {"x" * 100}' for i in range(20000)]
    cluster.produce('s', lines, '--batch-bytes', '8K')
    cluster.nodes[3].kill()
    until(lambda: {n['name']: n['state'] for n in cluster.status(which=[0, 1, 2])['nodes']}['n3'] == 'down', 'missed')
    until(lambda: fully_replicated(cluster, [0, 1, 2]), 'every log is fully replicated')
    until(lambda: any('has its copies again' in node.node_log() for node in cluster.nodes[:3]), 'an owner says so')
    equal(sorted(cluster.consume('s', which=[0, 1, 2])), lines)


def older_state_is_refused():
    """False: the leader did not stay, which alone knew what this voter had acknowledged. Another one brings the older state up to
    date before it is refused, and then the newest lacks what that has acknowledged."""
    cluster = Cluster(memory='256M', suspect_ms='10000', confirm_ms='1000').start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--copies', 3, '--durability', 'disk')
    victim = (cluster.leader() + 1) % 3
    left = [i for i in range(3) if i != victim]
    node = cluster.nodes[victim]
    node.stop()
    older = node.data + '.older'
    shutil.copytree(node.data, older)
    node.start()
    cluster.leat('stream', 'create', 't', '--streamlets', 3, '--logs', 1, '--copies', 3, '--durability', 'disk')
    lines = [f'{i:05d}' for i in range(1000)]
    cluster.produce('t', lines, '--batch-bytes', '2K')
    term = cluster.status(which=left)['term']
    node.kill()
    newest = node.data + '.newest'
    os.rename(node.data, newest)
    os.rename(older, node.data)
    node.launch()
    node.node_log_wait('its data directory is an older state of itself')
    equal(sorted(cluster.consume('t', which=left)), lines, 'the others go on')
    node.process.kill()
    node.wait()
    if cluster.status(which=left)['term'] != term:
        for i in left:
            cluster.nodes[i].kill()
        return False
    shutil.rmtree(node.data)
    os.rename(newest, node.data)
    node.start()
    cluster.leat('stream', 'create', 'u', '--streamlets', 3, '--logs', 1, '--copies', 3, which=[left[0]])
    cluster.produce('u', ['back'], which=[victim])
    equal(sorted(cluster.consume('t', which=[victim])), lines, 'its newest state is taken')
    node.process.kill()
    node.wait()
    shutil.rmtree(node.data)
    node.launch()
    node.node_log_wait('replace')
    until(lambda: cluster.leat('node', 'replace', f'n{victim}', which=left, code=None).returncode == 0, 'it is replaced')
    node.ready_wait()
    equal(sorted(cluster.consume('t')), lines)
    return True


def test_a_voter_with_an_older_state_of_its_disk_is_refused_by_name():
    check(any(older_state_is_refused() for _ in range(5)), 'five times another leader was elected')


def hibernated(cluster, stream):
    last = [log['segment_list'][-1] for log in described(cluster, stream)]
    return all(len(segment['copies']) == 2 and all(copy['hibernated'] for copy in segment['copies']) for segment in last)


def test_a_log_that_nobody_appends_to_has_its_copies_again():
    """Its last segment, too: of three copies two go, one after the other, and then the owner; what was acknowledged is there."""
    cluster = Cluster(memory='256M', hibernate_after='1', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 3, '--durability', 'disk')
    lines = [f'{i:05d}' for i in range(100)]
    cluster.produce('s', lines)
    owner = described(cluster, 's')[0]['node']
    others = [node for node in range(3) if f'n{node}' != owner]
    for victim in others:
        node = cluster.nodes[victim]
        until(lambda: hibernated(cluster, 's'), 'its copies are hibernated')
        node.kill()
        shutil.rmtree(node.data)
        node.launch()
        node.node_log_wait('replace')
        left = [i for i in range(3) if i != victim]
        until(lambda: cluster.leat('node', 'replace', f'n{victim}', which=left, code=None).returncode == 0, 'it is replaced')
        node.ready_wait()
        until(lambda: fully_replicated(cluster), 'the last segment has its copies again')
    cluster.nodes[int(owner[1:])].kill()
    equal(cluster.consume('s', which=others), lines)


def test_a_node_with_an_older_state_of_its_disk_is_refused_by_name():
    """It does not vote: raft can't tell. Nor is a start that was cut short taken for one."""
    cluster = Cluster(nodes=4, voters=3, memory='512M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 4, '--logs', 1, '--copies', 3, '--durability', 'disk')
    node = cluster.nodes[3]
    node.stop()
    older = node.data + '.older'
    shutil.copytree(node.data, older)
    for _ in range(3):
        node.start()
        node.kill()
    node.start()
    lines = [f'{i:05d}' for i in range(1000)]
    cluster.produce('s', lines, '--batch-bytes', '2K')
    node.kill()
    shutil.rmtree(node.data)
    os.rename(older, node.data)
    code, text = node.start_refused()
    equal(code, 3)
    check_in('its data directory is an older state of itself', text)
    equal(sorted(cluster.consume('s', which=[0, 1, 2])), lines, 'the others go on')
    shutil.rmtree(node.data)
    node.start()
    until(lambda: fully_replicated(cluster), 'it begins anew')
    equal(sorted(cluster.consume('s')), lines)


def test_a_stream_deleted_while_a_node_was_away_leaves_nothing_there():
    cluster = Cluster(nodes=4, voters=3, memory='512M', **PATIENT).start()
    for stream, level in (('a', 'disk'), ('b', 'memory')):
        cluster.leat('stream', 'create', stream, '--streamlets', 4, '--logs', 1, '--copies', 3, '--durability', level,
                     '--segment-bytes', '64K')
        cluster.produce(stream, [f'{i:05d} {"x" * 100}' for i in range(4000)], '--batch-bytes', '2K')
    node, left = cluster.nodes[3], [0, 1, 2]
    check(len({row['stream'] for row in node.rows()}) == 2, 'it has something of both')
    node.kill()
    until(lambda: {n['name']: n['state'] for n in cluster.status(which=left)['nodes']}['n3'] == 'down', 'missed')
    for stream in ('a', 'b'):
        cluster.leat('stream', 'delete', stream, which=left)
    cluster.leat('stream', 'create', 'a', '--streamlets', 4, '--logs', 1, '--copies', 3, which=left)
    cluster.produce('a', ['new'], which=left)
    node.start()
    equal(cluster.consume('a', which=[3]), ['new'])
    until(lambda: {row['stream'] for row in node.rows()} <= {3}, 'what was deleted is gone from its disk')
    equal(cluster.consume('a'), ['new'])


def test_a_directory_of_another_cluster_is_refused_by_name():
    """One that votes there, one that does not, and that of a server alone. Nothing in it is touched, and nobody notices."""
    foreign = Cluster(nodes=2, voters=1, memory='256M').start()
    foreign.leat('stream', 'create', 's', '--streamlets', 2, '--logs', 1, '--copies', 2, '--durability', 'disk')
    foreign.produce('s', ['kept'])
    for node in foreign.nodes:
        node.stop()
    alone = Server('--memory', '256M').start()
    alone.produce('s', ['kept'])
    alone.stop()
    cluster = Cluster(memory='256M').start()
    port, node_port = free_ports(2)
    other = {'node': 'n9', 'listen': f'127.0.0.1:{port}', 'node-listen': f'127.0.0.1:{node_port}'}
    code, text = cluster.node(0, **other, data=foreign.nodes[0].data).start_refused()
    equal(code, 3)
    check_in(f'this data directory is of another cluster, whose coordinators ({foreign.voters}) are not in --coordinators', text)
    # Whoever does not vote may have been told of no voters yet: it is the others who refuse it.
    member = cluster.node(0, **other, data=foreign.nodes[1].data)
    member.launch()
    member.node_log_wait('node n9 is of another cluster than node')
    member.process.kill()
    member.wait()
    code, text = cluster.node(0, **other, data=alone.data).start_refused()
    equal(code, 3)
    check_in(f'this data directory is of a server alone: name its own address, 127.0.0.1:{node_port}, in --coordinators', text)
    equal([n['name'] for n in cluster.status()['nodes']], ['n0', 'n1', 'n2'])
    foreign.start()
    equal(foreign.consume('s'), ['kept'])
    equal(alone.start().leat('consume', 's', '--until-end').stdout, 'kept\n')


def test_a_copy_of_a_directory_is_refused_under_another_name():
    """Beside the node that it is of, whenever it was made; and under the node's own name, whatever the copy was tried as."""
    cluster = Cluster(nodes=4, voters=3, memory='512M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 4, '--logs', 1, '--copies', 3, '--durability', 'disk')
    node = cluster.nodes[3]
    node.stop()
    shutil.copytree(node.data, node.data + '.before')
    node.start()
    lines = [f'{i:05d}' for i in range(1000)]
    cluster.produce('s', lines, '--batch-bytes', '2K')
    shutil.copytree(node.data, node.data + '.beside', ignore=shutil.ignore_patterns('leatd.sock'))
    port, node_port = free_ports(2)
    other = {'node': 'n9', 'listen': f'127.0.0.1:{port}', 'node-listen': f'127.0.0.1:{node_port}'}
    copy = cluster.node(3, **other, data=node.data + '.beside')
    code, text = copy.start_refused()
    equal(code, 1)  # as under a name that is up
    check_in("its data directory is node 'n3''s, or a copy of it, and that node is up at", text)
    copy = cluster.node(3, **other, data=node.data + '.before')
    code, text = copy.start_refused()
    equal(code, 3)
    check_in('its data directory is an older state of itself: another node was up with a newer one', text)
    equal([n['name'] for n in cluster.status()['nodes']], ['n0', 'n1', 'n2', 'n3'])
    node.stop()
    node.start()
    equal(sorted(cluster.consume('s')), lines)


def on_a_small_disk():
    """Three nodes; the second one's disk, and the stream's streamlets by owner."""
    point = mounted()
    cluster = Cluster(memory='256M', **PATIENT)
    cluster.nodes[1] = cluster.node(1, data=os.path.join(point, 'data'))
    cluster.start()
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'all three are up')
    return cluster, os.path.join(point, 'ballast')


def fill(path):
    with open(path, 'ab', buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            equal(error.errno, errno.ENOSPC)


def described(cluster, stream):
    return json.loads(cluster.leat('stream', 'describe', stream, '--json').stdout)['log_list']


def test_a_node_whose_disk_is_full_is_named():
    """As an owner, which refuses appends, and when there is space again."""
    cluster, ballast = on_a_small_disk()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--durability', 'disk', '--segment-bytes', '64K')
    own = next(log['streamlet'] for log in described(cluster, 's') if log['node'] == 'n1')
    cluster.leat('produce', 's', '--streamlet', own, input=b'first\n')  # its segment takes some of what follows
    fill(ballast)
    lines = b''.join(b'%0400d\n' % i for i in range(40000))
    said = cluster.leat('produce', 's', '--streamlet', own, '--timeout', '3s', input=lines, code=1).stderr.decode()
    check_in('no space left', said)
    check_in('trouble  node n1: its disk is full', cluster.leat('cluster', 'status', code=1).stdout.decode())
    equal([bool(n['report']['trouble']) for n in cluster.status(code=1)['nodes']], [False, True, False])
    check_in('trouble      its disk is full', cluster.leat('status', which=[1], code=1).stdout.decode())
    check_in('its disk is full', json.loads(cluster.leat('status', '--json', which=[1], code=1).stdout)['trouble'])
    cluster.leat('status', which=[0])

    def is_full():  # a file that the node gives up, such as an old one of raft's log, makes room for one segment more
        fill(ballast)
        cluster.leat('produce', 's', '--streamlet', own, '--timeout', '1s', input=lines, code=1)
        told = {log['streamlet']: (log['state'], log['code']) for log in described(cluster, 's')}
        said = cluster.leat('stream', 'describe', 's', code=None).stderr.decode()
        return (told == {streamlet: ('full', 'DISK_FULL') if streamlet == own else ('ok', 'OK') for streamlet in range(3)}
                and f'streamlet {own} log 0: the disk of its node is full' in said)
    until(is_full, 'its log, and no other, is described as full')
    os.unlink(ballast)
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'it has space again')
    equal({log['state'] for log in described(cluster, 's')}, {'ok'}, 'nobody has asked for a segment since')
    cluster.leat('produce', 's', '--streamlet', own, input=b'more\n')


def test_a_disk_is_not_full_any_more_when_a_stream_is_deleted():
    """Its space is free inside the store's files: the file system has none more."""
    cluster, ballast = on_a_small_disk()
    for stream in 's', 't':
        cluster.leat('stream', 'create', stream, '--streamlets', 3, '--logs', 1, '--durability', 'disk', '--segment-bytes', '64K')
    own, given = (next(log['streamlet'] for log in described(cluster, stream) if log['node'] == 'n1') for stream in 'st')
    lines = b''.join(b'%0400d\n' % i for i in range(40000))
    cluster.leat('produce', 't', '--streamlet', given, input=lines[:500000])
    cluster.leat('produce', 's', '--streamlet', own, input=b'first\n')
    fill(ballast)
    cluster.leat('produce', 's', '--streamlet', own, '--timeout', '3s', input=lines, code=1)
    check_in('trouble  node n1: its disk is full', cluster.leat('cluster', 'status', code=1).stdout.decode())
    cluster.leat('stream', 'delete', 't')
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'it has space again')
    equal({log['state'] for log in described(cluster, 's')}, {'ok'}, 'nobody has asked for a segment since')
    cluster.leat('produce', 's', '--streamlet', own, input=b'more\n')


def test_a_node_whose_disk_is_too_full_for_copies_is_named():
    """It owns nothing that is written to: appends go on with the copies that there are, and it is named."""
    cluster, ballast = on_a_small_disk()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--copies', 3, '--logs', 1, '--durability', 'disk',
                 '--segment-bytes', '64K')
    other = next(log['streamlet'] for log in described(cluster, 's') if log['node'] != 'n1')
    fill(ballast)
    cluster.leat('produce', 's', '--streamlet', other, input=b''.join(b'%0400d\n' % i for i in range(40000)))
    check_in('trouble  node n1: its disk is full', cluster.leat('cluster', 'status', code=1).stdout.decode())
    equal([bool(n['report']['trouble']) for n in cluster.status(code=1)['nodes']], [False, True, False])
    os.unlink(ballast)
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'it takes copies again')


if __name__ == '__main__':
    main()
