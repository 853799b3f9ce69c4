# SPDX-License-Identifier: Apache-2.0
"""The two commands as their users meet them: help, wrong words, exit codes, what programs read, and
bytes that come back as they went in."""
import fcntl
import contextlib
import datetime
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import termios
import threading
import time
from multiprocessing.pool import ThreadPool

from rig import LEAT, LEATD, WAIT_S, Server, check, check_in, directory, equal, line_read, main, on_end, until
import leftovers
import tied

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMANDS = ['', 'stream', 'stream create', 'stream list', 'stream describe', 'stream delete', 'produce',
            'consume', 'log', 'log recover', 'status', 'bench', 'bench append', 'bench pull']


def run(program, *arguments, **more):
    done = tied.run([program, *arguments], capture_output=True, timeout=WAIT_S, **more)
    return done.returncode, done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')


def test_help_of_every_command():
    for command in COMMANDS:
        code, out, err = run(LEAT, *command.split(), '--help')
        equal((code, err), (0, ''), command)
        check_in('Usage', out)
        check(max(map(len, out.splitlines())) <= 100, 'lines of help', command)
        # Every option that the help tells of is known: a wrong value is complained about, not the name.
        for option in set(re.findall(r'(--[a-z-]+)', out)):
            if not command or command in ('stream', 'log', 'bench'):
                continue
            code, _, err = run(LEAT, *command.split(), 'x', option, '--help')
            check(f'no option {option}' not in err, command, option, err)
    for program in (LEAT, LEATD):
        code, out, err = run(program, '--version')
        equal((code, err), (0, ''))
        check(re.search(r'\d+\.\d+\.\d+', out), out)
    code, out, err = run(LEATD, '--help')
    equal((code, err), (0, ''))
    for option in '--data --listen --cores --memory --config --log-level'.split():
        check_in(option, out)
    equal(run(LEAT, 'help'), run(LEAT, '--help'))


def test_too_few_files_are_named():
    with tempfile.TemporaryDirectory() as folder:
        code, _, err = run('prlimit', '--nofile=20:20', LEATD, '--data', folder, '--listen', '127.0.0.1:0')
    equal(code, 5, err)
    check_in('too many open files', err)
    check_in('ulimit -Hn', err)


def test_a_server_alone_keeps_its_name():
    server = Server('--node', 'old').start()
    server.produce('s', ['one'])
    server.stop()
    code, _, err = run(LEATD, '--data', server.data, '--node', 'new', '--listen', '127.0.0.1:0')
    equal(code, 2, err)
    check_in("this data directory has the streams of node 'old': start it with --node 'old'", err)
    server.start()
    equal(server.values('s'), ['one'])


def completed(name, *words):
    """What bash offers for the last of the words, with no server to ask."""
    script = f'source {ROOT}/completion/{name}.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{name}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = tied.run(['bash', '-c', script, 'bash', name, *words], capture_output=True, timeout=WAIT_S,
                    env=dict(os.environ, PATH='/usr/bin:/bin', LEAT_BROKERS='127.0.0.1:1'))
    equal(done.stderr, b'', (name, words))
    return done.stdout.decode().split()


def test_manual_and_completion_know_every_command_and_option():
    with open(os.path.join(ROOT, 'docs', 'man', 'leat.1')) as file:
        manual = file.read()
    spoken = re.sub(r'^\.(It|Op|Ar|Cm|Nm|Pq|Li|Ns|Fl) ?', '', manual, flags=re.M)
    commands = re.findall(r'^  leat ([a-z -]+?)(?: [A-Z.\[|]| {2}|$)', run(LEAT, '--help')[1], re.M)
    commands += ['bench append', 'bench pull', 'bench recovery', 'node undrain']
    check(len(commands) > 15, commands)
    for command in commands:
        words = command.split()
        check(words[-1].split('|')[0] in spoken, command, 'is not in the manual')
        for at in range(len(words)):
            check_in(words[at].split('|')[0], completed('leat', *words[:at], ''))
        if '|' in command:
            continue
        help_text = run(LEAT, *words, '--help')[1]
        offered = completed('leat', *words, *(['x'] if words[0] in ('produce', 'consume') else []), '--')
        for option in set(re.findall(r'^  (?:-\w, )?(--[a-z-]+)', help_text, re.M)):
            check(re.search(rf'Fl -{option[2:]}\b', manual), option, 'of', command, 'is not in the manual')
            check_in(option, offered)
    check_in('auto', completed('leat', 'bench', 'recovery', '--replication', ''))
    check('auto' not in completed('leat', 'bench', 'append', '--replication', ''), 'it is no kind to measure')
    # What stands behind an option is its value, and no operand: a stream's name is still to come (no server tells one), then files.
    for option in (['--linger', '5ms'], ['-K', ':'], ['--linger=5ms'], ['-zlz4'], ['-q'], ['--acks']):
        equal(completed('leat', 'produce', *option, ''), [], option)
        check(completed('leat', 'produce', *option, 's', '/'), 'files behind', option)
    with open(os.path.join(ROOT, 'docs', 'man', 'leatd.8')) as file:
        manual = file.read()
    for option in set(re.findall(r'--[a-z-]+', run(LEATD, '--help')[1])):
        check_in(option, completed('leatd', '--'))
        if option not in ('--help', '--version'):
            check_in(f'Fl -{option[2:]}', manual)


def test_quick_start_as_it_stands():
    """The page's own commands, in their order; what would not end by itself has a limit."""
    server = Server().start()
    with open(os.path.join(ROOT, 'docs', 'quick-start.md')) as file:
        page = file.read()
    tried = 0
    for block in re.findall(r'^```sh\n(.*?)^```', page, re.M | re.S):
        for line in block.splitlines():
            if not re.match(r'leat |printf .*\| leat ', line):
                continue
            line = line.split('  #')[0]
            if 'consume' in line and '--until-end' not in line:
                line += ' --until-end'
            line = re.sub(r'--seconds \d+', '--records 10000', line)
            done = tied.run(['bash', '-c', re.sub(r'\bleat (?=[a-z])', f'{LEAT} ', line)], capture_output=True,
                            timeout=WAIT_S, env=server.environment())
            equal(done.returncode, 0, f'{line}: {done.stderr!r}')
            if '%k' in line:
                check(re.fullmatch(rb'0 0 \d+ boiler 71.5\n0 1 \d+ cellar 12.0\n', done.stdout), done.stdout)
            tried += 1
    check(tried >= 9, tried, 'commands')


def test_wrong_words_of_leat():
    for words, said in [
            ('', 'Usage'), (100 * 'x', 'see leat --help'), ('strem', "did you mean 'stream'"), ('stream lst', "'stream list'"),
            ('log recovr x', 'log recover'), ('bench apend', "'bench append'"),
            ('consume', 'NAME'), ('consume x --fron 3', '--from'), ('consume x --from', '--from'),
            ('consume x --max-records many', 'whole number'), ('consume x --max-records -1', ''),
            ('consume x --format %q', '%q'), ('consume x --mode both --group s', 'parallel'),
            ('consume x --mode parallel', '--group'), ('consume x y', ''),
            ('consume x --from tomorrow', 'earliest'), ('consume x --from 99999999999999999999', 'earliest'),
            ('consume x --from @99999999999999999999', 'earliest'), ('consume x --from 2026-02-31', 'earliest'), ('produce x --linger nan', 'time'),
            ('stream create x --retention-bytes 99999999T', 'size'),
            ('stream create x --retention-time 200000000000000d', 'unit'), ('consume x --group', '--group'),
            ('produce', 'NAME'), ('produce x --batch-byte 4K', '--batch-bytes'),
            ('produce x --batch-bytes much', 'size'), ('produce x --linger soon', 'time'),
            ('produce x --compression gzip', 'zstd'), ('produce x --key-separator=', ''),
            ('stream create', 'NAME'), ('stream create x --durability ram', 'disk'),
            ('stream delete', 'NAME'), ('stream create x --retention-time 3600', 'unit'),
            ('stream list x', 'operands'), ('log recover', 'NAME'),
            ('-b', 'wants a value'), ('bench recovery --how fire', "not 'fire'"),
            ('bench recovery --trials 0', '--trials'), ('bench recovery --copies 9', 'between 2 and 4, the nodes'),
            ('bench recovery --replication pigeon', 'rpc'), ('bench append --producers 0', ''), ('bench append --sconds 1', '--seconds'),
            ('produce x --streamlet 99999999999', '--streamlet lies between 0 and'),
            ('produce x --batch-bytes 100', '--batch-bytes lies between 1024 and'),
            ('produce x --timeout 0', '--timeout lies between'),
            ('consume x --streamlet 99999999999', '--streamlet lies between 0 and'),
            ('bench append --compression gzip', 'zstd'),
            ('status x', 'operands'), ('stream list -b nonsense', 'nonsense'),
            ('stream list -b ::1:7700', 'IPV6')]:
        code, out, err = run(LEAT, *words.split(), env=dict(os.environ, LEAT_BROKERS='127.0.0.1:1'))
        equal((code, out), (2, ''), words + ': ' + err)
        check_in(said, err)
        check(err.startswith('leat: ') or 'Usage' in err, err)


def test_wrong_words_of_leatd():
    place = directory()
    file, long, own = (os.path.join(place, name) for name in ('conf', 'long', 'own'))
    with open(long, 'w') as out:
        out.write(f"# {196 * 'x'}\ncoordinators = {','.join(f'10.0.0.{i}:7701' for i in range(15))}\n")
    twice = os.path.join(place, 'twice')
    for words, said in [
            ('--lisen 127.0.0.1:0', '--listen'), ('--recovery no', 'recovery is always on'), ('--memory', 'needs a value'), ('--' + 60 * 'x', '--help lists all'), ('--memory lots', 'bytes'),
            ('--memory 1M', 'at least|too small'), ('--cores 0', '1 to 64'), ('--cores 65', '1 to 64'),
            ('--log-level loud', 'debug'), (f'--listen {200 * "x"}:7700', '1 to 127 bytes'), ('--coordinators ,,', 'nobody'), ('--auto-create maybe', 'yes or no'), ('extra', 'option'),
            ('--listen 7700', '--listen is HOST:PORT, not "7700"'), ('--listen ::1:7700', 'HOST:PORT'),
            ('--listen 127.0.0.1:65536', 'HOST:PORT'), ('--kafka nonsense', '--kafka is HOST:PORT or off'),
            ('--ping-ms 100 --suspect-ms 50', 'suspect-ms has to be at least 200'),
            ('--ping-ms 51', 'suspect-ms 100 .*at least 102, .*or ping-ms 50 at most'), ('--suspect-ms 49', 'ping-ms 25 and'),
            ('--scrub fast', 'number'), ('--hibernate-after 0', ''), ('--config /nonexistent', 'nonexistent'), (f'--config {place}', 'directory'),
            (f'--config {long}', 'line 2: longer than 198 bytes'),
            (f'--config {file}', r'conf, line 2: .*did you mean "memory"'),
            (f'--config {twice}', 'line 3: "memory" is there twice'), ('--memory 10', 'budget of 10 bytes is too small'),
            (f'--config {own}', 'line 1: "config" is no key of a file')]:
        with open(file, 'w') as out:
            out.write('cores = 1\nmemry = 256M\n')
        with open(twice, 'w') as out:
            out.write('memory = 256M\ncores = 1\nmemory = 300M\n')
        with open(own, 'w') as out:
            out.write(f'config = {file}\n')
        listen = () if '--listen' in words else ('--listen', '127.0.0.1:0')  # 7700 may be in use
        code, out, err = run(LEATD, '--data', os.path.join(place, 'data'), *listen, *words.split())
        equal((code, out), (2, ''), words + ': ' + err)
        check(re.search(said, err), said, 'was not said:', err)
        check(err.startswith('leatd: '), err)


def test_a_server_whose_address_is_taken_leaves_nothing():
    other, late = Server().start(), Server()
    code, text = late.start_refused('--listen', other.address)
    equal(code, 4, text)
    check_in(other.address, text)
    check_in('name another address by --listen', text)
    check(not os.path.exists(late.data), 'a data directory')
    for flag in '--kafka', '--node-listen':
        more = ('--coordinators', other.address, '--advertise', other.address) if flag == '--node-listen' else ()
        refused = Server()
        code, text = refused.start_refused(flag, other.address, *more)
        equal(code, 4, text)
        check(not os.path.exists(refused.data), flag, 'left a data directory')
        equal(list(leftovers.pools(refused.home)), [], flag)
        check_in(f"can't listen on {other.address}: Address already in use; name another address by {flag}", text)
    late.start()
    late.stop()
    code, text = late.start_refused('--listen', other.address)
    equal(code, 4, text)
    late.start()


def test_a_lock_that_can_not_be_had_is_told_with_its_cause():
    server = Server().start()
    code, text = Server(data=server.data).start_refused()
    equal(code, 3, text)
    check_in('is in use by process %d: end that process, or name another directory by --data' % server.process.pid, text)
    server.stop()
    os.rename(server.path('lock'), server.path('moved'))
    os.symlink('moved', server.path('lock'))
    code, text = server.start_refused()
    equal(code, 3, text)
    check_in('lock: it is a symbolic link, which only directories may be', text)


def test_segments_without_the_coordinators_files_are_refused_with_what_to_do():
    server = Server().start()
    server.produce('some', ['thing'])
    server.stop()
    shutil.move(server.path('raft'), server.path('raft-kept'))
    code, text = server.start_refused()
    check_in('put the data directory\'s raft/ back', text)
    shutil.rmtree(server.path('raft'))
    shutil.move(server.path('raft-kept'), server.path('raft'))
    server.start()
    equal(server.values('some'), ['thing'])


def test_config_file_and_flags_over_it():
    place = directory()
    file = os.path.join(place, 'conf')
    with open(file, 'w') as out:
        out.write('# a comment\nmemory = 300M ; more\n  cores = 1\n\tauto-create = no\n')
    server = Server('--config', file, '--memory', '256M', '--cores', '2').start()
    check_in('256 MiB', server.ready)
    check_in('2 cores', server.ready)
    done = server.leat('produce', 'missing', input=b'x\n', code=1)
    check_in('missing', done.stderr)
    check_in('stream create', done.stderr)
    equal(json.loads(server.leat('stream', 'list', '--json').stdout), [])
    server.stop()
    code, text = server.start_refused('--listen', '203.0.113.1:7700')
    equal(code, 4, text)
    check_in('203.0.113.1', text)
    other = Server().start()
    code, text = server.start_refused('--listen', other.address)
    equal(code, 4, text)
    check_in(other.address, text)
    server.start('--memory', '2T')
    check_in('this machine has', server.node_log())


def test_json_that_programs_read():
    server = Server().start()
    equal(json.loads(server.leat('stream', 'list', '--json').stdout), [])
    server.leat('stream', 'create', 'one', '--streamlets', 2, '--logs', 3, '--retention-time', '12h',
                '--retention-bytes', '10G', '--segment-bytes', '64K', '--durability', 'memory')
    server.produce('one', ['a', 'b'], '--streamlet', 1)
    settings = {'name': 'one', 'streamlets': 2, 'logs': 3, 'copies': 1, 'durability': 'memory',
                'segment_bytes': 65536, 'retention_ms': 12 * 3600 * 1000, 'retention_bytes': 10 << 30}
    listed = json.loads(server.leat('stream', 'list', '--json').stdout)
    equal({k: listed[0][k] for k in settings}, settings)
    told = server.describe('one')
    equal({k: told[k] for k in settings}, settings)
    equal(len(told['log_list']), 6)
    for log in told['log_list']:
        for key in ('streamlet log owner epoch lane state first_offset end_offset bytes first_segment '
                    'segments first_group groups producers memory_bytes code text').split():
            check(key in log, key, log)
    equal(sum(g['end_offset'] for g in told['log_list'] if g['streamlet'] == 1), 2)
    status = server.status()
    for key in ('version uptime_ms cpu_us cores memory_budget memory_used disk_free appended_records '
                'appended_bytes fetched_records fetched_bytes connections').split():
        check(key in status, key, status)
    equal((status['appended_records'], status['memory_budget'], status['cores']), (2, 256 << 20, 2))
    for words in ('append --records 20000 --producers 3 --streamlets 2 --logs 2 --compression lz4',
                  'append --seconds 500ms --rate 20000 --producers 2', 'pull --verify'):
        done = server.leat('bench', *words.split(), '--stream', 'b', '--json', '-')
        report = json.loads(done.stdout)
        for key in ('records seconds records_per_second bytes_per_second server_cpu_seconds '
                    'client_cpu_seconds records_per_server_cpu_second per_second settings').split():
            check(key in report, key, report)
        check(report['records'] > 0 and report['seconds'] > 0, report)
        if 'append' in words:
            equal(set(report['latency_us']), {'p50', 'p90', 'p99', 'p999', 'max'})
            equal(report['latency_kind'], 'intended_send_time' if 'rate' in words else 'closed_loop')
            for key, value in (('producers', 3), ('record_bytes', 100), ('batch_records', 100)):
                if 'rate' not in words:
                    equal(report['settings'][key], value)
        else:
            equal(report['settings']['wrong_records'], 0)


def test_bench_reports_the_stream_as_it_is():
    """Settings that were asked for and are not what the stream has would be a false label of the figures."""
    server = Server().start()

    def append(*words, code=0):
        return server.leat('bench', 'append', '--records', 1000, '--producers', 1, '--json', '-', *words, code=code)

    def settings(*words):
        made = json.loads(append(*words).stdout)['settings']
        return tuple(made[key] for key in ('stream', 'streamlets', 'logs', 'durability', 'copies'))

    server.leat('stream', 'create', 's', '--streamlets', 2, '--logs', 3, '--durability', 'disk')
    equal(settings('--stream', 's'), ('s', 2, 3, 'disk', 1))
    equal(settings('--stream', 's', '--logs', 3, '--durability', 'disk'), ('s', 2, 3, 'disk', 1))
    for words in ('--durability memory', '--logs 2', '--streamlets 1', '--copies 2'):
        done = append('--stream', 's', *words.split(), code=1)
        check(re.search('2 streamlets of 3 logs, 1 copy, durability disk.*--fresh', done.stderr), words, done.stderr)
    # Where no name was given another stream is taken, which is said, and taken again the next time.
    equal(settings('--logs', 1), ('bench', 1, 1, 'memory', 1))
    for _ in range(2):
        equal(settings('--durability', 'disk', '--logs', 1), ('bench-disk-1-logs', 1, 1, 'disk', 1))
    check_in('bench-disk-1-logs', append('--durability', 'disk', '--logs', 1).stderr)
    equal(settings(), ('bench', 1, 1, 'memory', 1))
    equal(settings('--durability', 'disk', '--logs', 2, '--fresh', '--stream', 'bench'), ('bench', 1, 2, 'disk', 1))


def test_bench_tells_of_all_that_it_appended():
    """Who pulls finds what append told of, and no more: else records would seem to be there twice."""
    server = Server().start()
    told = 0
    for words in ('--seconds 300ms --producers 8', '--records 1234 --producers 3', '--records 2 --producers 3'):
        done = json.loads(server.leat('bench', 'append', '--stream', 'b', '--streamlets', 2, *words.split(), '--json', '-').stdout)
        equal(done['warming_records'], 2 * int(words.split()[-1]), 'one of each producer for each streamlet')
        told += done['records'] + done['warming_records']
    found = json.loads(server.leat('bench', 'pull', '--stream', 'b', '--verify', '--json', '-').stdout)
    equal((found['records'], found['settings']['wrong_records']), (told, 0))
    check_in('3 records to open the logs', server.leat('bench', 'append', '--records', 10, '--producers', 3).stdout)


def test_bytes_come_back():
    server = Server().start()
    place = directory()
    blobs = {'crlf': b'a\r\nb\r\n', 'open end': b'no newline', 'empty lines': b'\n\nx\n\n\n',
             'nul': b'\0\n\0\0x\0\n', 'one': b'\n', 'random': os.urandom(200000),
             'long': b'y' * 1000000 + b'\nz\n', 'latin': bytes(range(256)) * 300}
    for codec in ('none', 'lz4', 'zstd'):
        for number, (name, blob) in enumerate(blobs.items()):
            path = os.path.join(place, 'file')
            with open(path, 'wb') as file:
                file.write(blob)
            stream = f'{codec}{number}'
            server.leat('stream', 'create', stream, '--logs', 1)
            server.leat('produce', stream, path, '--compression', codec, '--batch-bytes', '16K')
            got = server.leat('consume', stream, '--until-end', text=False).stdout
            check(got == blob, f'{name} with {codec}: {len(got)} bytes of {len(blob)}')
    # Compressed is smaller, or it was not compressed.
    server.leat('stream', 'create', 'zeros', '--logs', 1)
    server.leat('produce', 'zeros', '--compression', 'zstd', input=b'0' * 500000 + b'\n')
    check(server.logs('zeros')[0, 0]['bytes'] < 50000, 'zstd')


def test_batches_are_no_larger_than_their_stream_takes():
    server = Server().start()
    lines = [f'{i:05d} {"x" * 50}' for i in range(5000)]
    for codec in ('none', 'lz4'):
        server.leat('stream', 'create', codec, '--logs', 1, '--max-batch-bytes', 1000)
        server.leat('produce', codec, '--compression', codec, input=''.join(f'{line}\n' for line in lines).encode())
        equal(server.leat('consume', codec, '--until-end').stdout.splitlines(), lines, codec)


def test_several_files_and_stdin():
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    place = directory()
    for name, text in (('a', 'a1\na2\n'), ('b', 'b1'), ('c', 'c1\n')):
        with open(os.path.join(place, name), 'w') as file:
            file.write(text)
    a, b, c = (os.path.join(place, name) for name in 'abc')
    done = server.leat('produce', 's', a, '-', b, c, input=b'in\n')
    check_in('5 records', done.stderr)
    equal(server.leat('consume', 's', '--until-end').stdout, 'a1\na2\nin\nb1c1\n')
    done = server.leat('produce', 's', a, os.path.join(place, 'none'), code=1)
    check_in('none', done.stderr)
    # A reader that goes away early is no failure of the server's.
    process = server.leat_start('consume', 's', '--from', '0')
    equal(line_read(process.stdout), 'a1\n')
    process.stdout.close()
    server.produce('s', ['x'] * 100000)
    process.wait(WAIT_S)
    server.status()


def test_format_keys_and_positions():
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    server.produce('s', ['k1:v1', 'none', ':empty', 'k2:v:2'], '--key-separator', ':')
    got = server.leat('consume', 's', '--until-end', '--format',
                      r'%t|%p|%o|%K|%k|%S|%v|%s|%%|\t|\x41|\0|\\;\n', text=False).stdout
    row = 's|0|{}|%|\t|A|\0|\\;\n'
    wanted = ''.join(row.format(r) for r in ('0|2|k1|2|v1|v1', '1|-1||4|none|none', '2|0||5|empty|empty',
                                             '3|2|k2|3|v:2|v:2'))
    equal(got, wanted.encode())
    # A separator may be told by its escape, and may have several bytes.
    server.leat('stream', 'create', 'keyed', '--logs', 1)
    for separator, line in (('\\t', b'a\tb'), ('\\x3d=', b'a==b'), ('\\\\', b'a\\b'), ('\\0', b'a\0b')):
        server.leat('produce', 'keyed', '--key-separator', separator, input=line + b'\n')
    equal(server.values('keyed', '--format', '%k,%v'), ['a,b'] * 4)
    times = [int(t) for t in server.leat('consume', 's', '--until-end', '--format', '%T').stdout.split()]
    check(len(times) == 4 and times == sorted(times) and times[0] > 1_700_000_000_000, times)
    equal(server.values('s', '--from', 2), ['empty', 'v:2'])
    equal(server.values('s', '--from', 'latest'), [])
    equal(server.values('s', '--max-records', 1), ['v1'])
    equal(server.values('s', '--from', f'@{times[-1] + 1}'), [])
    equal(server.values('s', '--from', '2001-01-01'), ['v1', 'none', 'empty', 'v:2'])
    equal(server.values('s', '--from', '2001-01-01T10:00:00Z', '--max-records', 2), ['v1', 'none'])
    server.produce('s', ['later'])
    # The same hour in other words: local time elsewhere, with and without a colon.
    moment = datetime.datetime.fromtimestamp(times[-1] / 1000 + 300, datetime.timezone.utc)
    for hours in (0, 5, -8):
        there = moment.astimezone(datetime.timezone(datetime.timedelta(hours=hours, minutes=30)))
        for text in (there.isoformat(), there.strftime('%Y-%m-%dT%H:%M:%S%z')):
            equal(server.values('s', '--from', text), [], text)
            earlier = (there - datetime.timedelta(minutes=10)).isoformat()
            equal(len(server.values('s', '--from', earlier)), 5, earlier)
    # A NUL ends a record as a newline does; letters may stand together.
    equal(server.leat('consume', 's', '-ec', 2, '--format', r'%v\0', text=False).stdout, b'v1\0none\0')
    equal(server.leat('consume', 's', '-ec2', '--format', '%v').stdout, 'v1\nnone\n')
    last = int(server.leat('consume', 's', '--from', 4, '--until-end', '--format', '%T').stdout)
    if last > times[-1]:
        equal(server.values('s', '--from', f'@{last}'), ['later'])
    # Past the end: the valid range is named, and reading goes on there.
    done = server.leat('consume', 's', '--from', 99, '--until-end', code=None)
    check(re.search(r'stream s streamlet 0 log 0: offset 99 .*valid range 0 to 5', done.stderr), done)
    # Without --until-end it waits for what comes.
    process = server.leat_start('consume', 's', '--from', 'latest', '--max-records', '1')
    for _ in range(1000):
        server.produce('s', ['fresh'])
        if process.poll() is not None:
            break
    equal(process.wait(WAIT_S), 0)
    equal(process.stdout.read(), b'fresh\n')


def addresses(server, name, *options):
    """(offset, address) of each record, as %a prints it."""
    rows = server.leat('consume', name, '--until-end', '--format', '%o %a', *options).stdout.splitlines()
    return [(int(offset), address) for offset, address in map(str.split, rows)]


def test_application_offsets_lead_to_their_batch_for_good():
    """Also after a kill, from files, and while others are dropped in front of them."""
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1, '--segment-bytes', '16K')
    server.produce('s', [f'{i:06}' for i in range(40000)], '--batch-bytes', '4K')
    rows = addresses(server, 's')
    equal([offset for offset, _ in rows], list(range(40000)))
    first = {}  # offset of the first record that lies at an address
    for offset, address in rows:
        first.setdefault(address, offset)
    log = server.logs('s')[0, 0]
    check(log['groups'] >= 3 and len(first) > 100, log, len(first))
    segments = [int(a.split('/')[1]) for a in first]
    check(segments == sorted(segments) and set(segments) == set(range(log['end_segment'])), log)
    shown = server.leat('stream', 'describe', 's').stdout
    check_in(f"0-{log['end_segment'] - 1}", shown)
    some = list(first.items())[::17]
    for round in range(3):
        for address, offset in some:
            equal(server.values('s', '--from', address, '--max-records', 1), [f'{offset:06}'], address)
        group, segment, _ = some[-1][0].split('/')
        start = min(o for a, o in first.items() if a.split('/')[1] == segment)
        equal(server.values('s', '--from', f'{group}/{segment}/0', '--max-records', 1), [f'{start:06}'])
        if round == 0:
            server.kill()
            server.start()
        else:
            server.stop()
            server.start()
    equal(server.values('s', '--from', some[-1][0]), [f'{i:06}' for i in range(some[-1][1], 40000)])
    # The front is given up, in the middle of a segment.
    middle = len(some) // 2
    server.leat('stream', 'trim', 's', '--streamlet', 0, '--log', 0, '--before', some[middle][1])
    for at, (address, offset) in enumerate(some):
        done = server.leat('consume', 's', '--from', address, '--max-records', 1, code=1 if at < middle else 0)
        if at >= middle:
            equal(done.stdout, f'{offset:06}\n')
        else:
            check(re.search(rf'stream s streamlet 0 log 0: nothing at {address}: .*the log goes from \d+/\d+/0 to '
                            r'\d+/\d+/\d+$', done.stderr.strip()), done.stderr)
    equal(addresses(server, 's')[0][0], some[middle][1])


def test_application_offsets_that_are_none():
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    server.leat('stream', 'create', 'm', '--logs', 2, '--streamlets', 2)
    server.produce('s', ['a', 'b'])
    server.produce('m', [str(i) for i in range(100)])
    address = addresses(server, 's')[0][1]
    segment = int(address.split('/')[1])
    for wrong, why in ((f'0/{segment}/7', 'no batch begins there'), ('1/0/0', 'segment 0 is of segment group 0'),
                       ('9/150/0', 'behind the end'), (f'0/{segment}/4294967295', 'behind the end')):
        done = server.leat('consume', 's', '--from', wrong, '--until-end', code=1)
        check_in(why, done.stderr)
        check_in('the log goes from 0/0/0 to 0/', done.stderr)
    for wrong in ('0/1', '0/1/2/3', '0//1', '/0/1', '0/1/', 'a/b/c', '-1/0/0', '0/0/4294967296', '0/ 0/0'):
        check_in('three numbers', server.leat('consume', 's', '--from', wrong, code=2).stderr)
    check_in('of one log', server.leat('consume', 's', '--from', address, '--group', 'x', code=2).stderr)
    # Of several logs one has to be named; they have the others' records still.
    check_in('name streamlet and log', server.leat('consume', 'm', '--from', '0/0/0', code=1).stderr)
    check_in('no such streamlet or log', server.leat('consume', 'm', '--from', '0/0/0', '--log', 7, '--streamlet', 0,
                                                     code=1).stderr)
    got = [server.values('m', '--from', '0/0/0', '--streamlet', s, '--log', q) for s in (0, 1) for q in (0, 1)]
    equal(sorted(sum(got, []), key=int), [str(i) for i in range(100)])
    equal(sum(len(server.values('m', '--log', q)) for q in (0, 1)), 100)
    # Those of a parallel consumer group's records are told, too.
    equal([a for _, a in addresses(server, 's', '--group', 'p', '--mode', 'parallel')], [address] * 2)


def test_each_log_whose_start_is_out_of_range_is_told():
    server = Server().start()
    server.leat('stream', 'create', 'm', '--logs', 3)
    server.leat('stream', 'create', 'many', '--logs', 2, '--streamlets', 30)
    said = server.leat('consume', 'm', '--from', 99, '--until-end').stderr.splitlines()
    equal(sorted(re.findall(r'log (\d): offset 99 .* 0 to 0', '\n'.join(said))), ['0', '1', '2'])
    said = server.leat('consume', 'many', '--from', 99, '--until-end').stderr.splitlines()
    equal((len(said), said[-1]), (33, 'leat: and 28 notes more, which were not kept'))


def test_streams_that_are_not_there():
    server = Server().start()
    for words in ('consume x', 'stream describe x', 'stream delete x', 'log recover x --accept-loss',
                  'bench pull --stream x'):
        done = server.leat(*words.split(), code=1)
        check_in('x', done.stderr)
        check(re.search(r'no (such )?stream|no stream', done.stderr), words, done.stderr)
    for name in ('a/b', '', '.', 'a b', 'x' * 250, 'ü'):
        done = server.leat('stream', 'create', name, code=None)
        check(done.returncode in (1, 2), name, done)
        check(re.search('name', done.stderr, re.I), name, done.stderr)
    for words, said in (('--segment-bytes 5K', 'segment'), ('--logs 1000', 'logs'),
                        ('--streamlets 100000', 'streamlets')):
        done = server.leat('stream', 'create', 'z', *words.split(), code=None)
        check(done.returncode in (1, 2), words, done)
        check_in(said, done.stderr)
    server.leat('stream', 'create', 'x' * 249)
    server.leat('stream', 'create', 'y')
    check_in('exists', server.leat('stream', 'create', 'y', code=1).stderr)
    check_in('streamlet', server.leat('produce', 'y', '--streamlet', 7, input=b'1\n', code=1).stderr)
    done = server.leat('log', 'recover', 'y', '--accept-loss', code=1)
    check(re.search(r'not|nothing', done.stderr), done.stderr)
    # Made by producing, unless the server forbids.
    server.produce('made', ['x'])
    equal(server.values('made'), ['x'])
    server.stop()
    server.start('--auto-create', 'no')
    check_in('stream create', server.leat('produce', 'new', input=b'x\n', code=1).stderr)
    server.leat('produce', 'made', input=b'y\n')


def test_an_interrupted_producer_says_what_it_waits_for():
    server = Server().start()
    server.produce('s', ['before'])
    process = server.leat_start('produce', 's', stdin=subprocess.PIPE)
    process.stdin.write(b'one\n')
    process.stdin.flush()
    until(lambda: 'one' in server.values('s'), 'the producer is connected')
    server.kill()
    process.stdin.write(b'two\n')
    process.stdin.flush()
    # It has read the line once nothing is left in the pipe.
    until(lambda: not int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), 'little'), 'the line is read')
    process.send_signal(signal.SIGINT)
    check(re.search('waiting for the acks of 1 record .*interrupt again', line_read(process.stderr)))
    process.send_signal(signal.SIGINT)
    equal(process.wait(WAIT_S), 130)


def test_a_producer_that_is_interrupted_while_it_waits_for_acks_says_so():
    server = Server().start()
    server.produce('s', ['before'])
    process = server.leat_start('produce', 's', stdin=subprocess.PIPE)
    process.stdin.write(b'one\n')
    process.stdin.flush()
    until(lambda: 'one' in server.values('s'), 'the producer is connected')
    server.kill()
    process.stdin.write(b'two\n')
    process.stdin.close()
    check_in('no ack for', line_read(process.stderr))  # long behind its last line
    process.send_signal(signal.SIGINT)
    check(re.search('waiting for the acks of 1 record .*interrupt again', line_read(process.stderr)))
    process.send_signal(signal.SIGINT)
    equal(process.wait(WAIT_S), 130)


def signals_caught(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        return int(re.search(r'SigCgt:\s*(\w+)', file.read())[1], 16)


def test_a_signal_just_before_the_first_read_ends_a_producer():
    """It came between the look at what came and the read: one in five of these waited on, for its stdin."""
    server = Server().start()
    server.produce('s', ['before'])
    for number in range(60):
        process = server.leat_start('produce', 's', stdin=subprocess.PIPE)
        while not signals_caught(process.pid) >> signal.SIGTERM - 1 & 1:
            equal(process.poll(), None, number)
        process.send_signal(signal.SIGTERM)
        equal(process.wait(WAIT_S), 0, number)


def test_records_that_linger_are_not_called_stalled():
    server = Server().start()
    server.produce('s', ['before'])
    process = server.leat_start('produce', 's', '--linger', '7s', stdin=subprocess.PIPE)
    process.stdin.write(b'one\n')
    process.stdin.flush()
    until(lambda: 'one' in server.values('s'), 'it was sent')
    process.stdin.close()
    equal(process.wait(WAIT_S), 0)
    check('no ack' not in process.stderr.read().decode(), 'nothing is wrong')


def test_a_producer_without_acks_says_so_and_goes_on():
    server = Server().start()
    server.produce('s', ['before'])
    process = server.leat_start('produce', 's', stdin=subprocess.PIPE)
    process.stdin.write(b'one\n')
    process.stdin.flush()
    until(lambda: 'one' in server.values('s'), 'the producer is connected')
    server.kill()
    process.stdin.write(b'two\n')
    process.stdin.flush()
    check(re.search('no ack for 5 s: 1 record under way .*; still trying', line_read(process.stderr)))
    server.start('--listen', server.address)
    process.stdin.close()
    equal(process.wait(WAIT_S), 0)
    equal(sorted(server.values('s')), ['before', 'one', 'two'])


def test_a_signal_ends_cluster_status_while_a_server_says_nothing():
    with socket.create_server(('127.0.0.1', 0)) as silent:
        process = tied.start([LEAT, 'cluster', 'status', '-b', f'127.0.0.1:{silent.getsockname()[1]}'])
        silent.accept()
        process.send_signal(signal.SIGTERM)
        equal(process.wait(WAIT_S), -signal.SIGTERM)


def test_a_server_alone_shows_the_port_that_it_has():
    server = Server().start()
    shown = json.loads(server.leat('cluster', 'status', '--json').stdout)
    equal([(node['address'], node['role']) for node in shown['nodes']], [(server.environment()['LEAT_BROKERS'], 'leader')])
    server = Server('--advertise', 'broker.example:7799').start()
    shown = json.loads(server.leat('cluster', 'status', '--json').stdout)
    equal([node['address'] for node in shown['nodes']], ['broker.example:7799'])
    server.produce('s', ['x'])  # from here it is not there; where it was found is
    equal(server.values('s'), ['x'])


def test_output_that_can_not_be_written_is_a_failure():
    server = Server().start()
    server.produce('s', range(1000))
    for words in ('stream list', 'stream describe s', 'status --json', 'cluster status', 'consume s --until-end',
                  'bench append --records 1000 --json -'):
        with open('/dev/full', 'w') as full:
            done = tied.run([LEAT, *words.split()], stdout=full, stderr=subprocess.PIPE, timeout=WAIT_S,
                            env=server.environment())
        equal(done.returncode, 1, words)
        check_in(b"standard output can't be written", done.stderr)


def test_a_record_that_is_too_large():
    server = Server().start()
    done = server.leat('produce', 's', input=b'x' * (3 << 20) + b'\nbehind\n', code=1)
    check(re.search(r'record 1 \(3145728 bytes\) was refused: larger than .*; nothing from it on was sent', done.stderr), done.stderr)
    done = server.leat('produce', 's', '-', input=b'short\n\n' + b'x' * (5 << 20) + b'\nbehind\n', code=1)
    check(re.search(r'stdin: line 3 is longer than', done.stderr), done.stderr)
    equal(server.values('s'), ['short', ''])
    server.leat('stream', 'create', 'small', '--logs', 1, '--max-batch-bytes', '1K')
    done = server.leat('produce', 'small', input=b'x' * 2000, code=1)
    check(re.search(r'^0 records, 1 not acked, [\d.]+ s$', done.stderr, re.M), done.stderr)
    server.produce('s', ['fits'])
    equal(sorted(server.values('s')), ['', 'fits', 'short'])  # another producer has another log, perhaps


def test_a_reader_of_the_pipe_that_goes_ends_a_consumer_that_waits():
    """As in "leat consume s | head -1": nothing more comes that could be written."""
    server = Server().start()
    server.produce('s', ['one'])
    process = server.leat_start('consume', 's')
    equal(process.stdout.readline(), b'one\n')
    process.stdout.close()
    equal(process.wait(WAIT_S), 0)


def test_the_shortest_runs_end():
    """One in twenty did not: its end was told before the thread that watches it had looked."""
    server = Server().start()
    for number in range(200):
        code, out, err = run(LEAT, 'produce', 's', '-b', f'{server.host}:{server.port}', stdin=subprocess.DEVNULL)
        equal((code, out), (0, ''), f'{number}: {err}')


# What is wrong, the exit code of leat(1), and what the message has to name.
WRONG = [
    ('node forget n1', 2, 'leat node drain'), ('stream', 2, 'Usage'), ('stream bogus', 2, 'stream --help'), ('stream create ' + 2000 * 'x', 1, 'too long'), ('stream create', 2, 'NAME'),
    ('consume nowhere --until-end', 1, 'make it with: leat stream create nowhere'), ('consume a/b --until-end', 1, 'none can be named so'),
    ('consume .. --until-end', 1, 'none can be named so'), ('consume leat.x --until-end', 1, 'the server makes by itself'),
    ('stream create a b', 2, 'NAME'), ('stream create a/b', 1, "byte 2 of the stream's name is '/'"), ('stream create s', 1, 'exists'),
    ('stream create x --logs abc', 2, '--logs'), ('stream create x --logs -1', 2, '--logs'),
    ('stream create x --nope', 2, '--nope'), ('stream create x --durability foo', 2, 'memory or disk'),
    ('stream create x --segment-bytes 17K', 1, 'power of two'), ('stream create x --segment-bytes 8K', 2, 'between 16384 and'),
    ('stream create x --streamlets 99999999', 2, '65536'), ('stream list x', 2, 'operands'),
    ('stream describe', 2, 'NAME'), ('stream describe nope', 1, 'nope'), ('stream delete nope', 1, 'nope'),
    ('stream delete leat.sets', 1, "server's own"), ('produce', 2, 'NAME'),
    ('produce s /nonexistent', 1, '/nonexistent: No such'), ('produce s --timeout x', 2, '--timeout'),
    ('produce made-for-a-directory /tmp', 1, '/tmp: Is a directory'), ('stream describe made-for-a-directory', 1, 'no stream'),
    ('produce bad/name', 1, 'letters, digits'), ('consume', 2, 'NAME'), ('consume nope', 1, 'stream create'),
    ('consume s --from foo', 2, '--from'), ('consume s --streamlet 7 --until-end', 1, 'describe'),
    ('consume s --mode ordered', 2, '--group'), ('consume s --group x --mode foo', 2, 'parallel'),
    (f'consume s --group {"x" * 250} --until-end', 1, "a group's name"), ('consume s --format %z', 2, '%z'), ('consume s --format a%', 2, "not '%'"),
    ('consume s --format \\q%o', 2, "not '\\q'"), ('consume s --format %v\\x0', 2, "not '\\x0'"),
    ('produce s --key-separator \\x4g', 2, "--key-separator knows"),
    ('stream trim s', 2, '--before OFFSET or end'), ('stream trim s --streamlet 0 --log 0 --before foo', 2, "not 'foo'"),
    ('stream trim s --streamlet 70000 --log 0 --before 1', 2, '--streamlet lies between 0 and 65535'),
    ('stream trim s --streamlet 0 --log 256 --before 1', 2, '--log lies between 0 and 255'),
    ('stream create x --max-batch-bytes 127', 2, '--max-batch-bytes lies between 128 and 2097152'),
    ('log', 2, 'Usage'), ('log foo', 2, 'log recover'), ('log recover', 2, 'NAME'),
    ('log recover s', 1, 'nothing is missing'), ('log recover s --accept-loss', 1, 'nothing is missing'),
    ('log recover nope --accept-loss', 1, 'see leat stream list'), ('log recover s --log 9 --accept-loss', 1, 'log 9'),
    ('log recover s --streamlet 99999999999 --accept-loss', 2, '65535'), ('status x', 2, 'operands'),
    ('bench', 2, 'Usage'), ('bench foo', 2, 'foo'), ('bench append x', 2, 'operands'),
    ('stream create x --streamlets 0', 2, '--streamlets lies between 1 and 65536'),
    ('stream create x --logs 0', 2, '--logs lies between 1 and 256'), ('stream create x --copies 0', 2, '--copies'),
    ('stream create x --retention-time 0s', 2, 'keep nothing'), ('stream create x --retention-bytes 0', 2, 'keep nothing'),
    ('produce s --batch-bytes 0', 2, '1024'), ('consume s --from 2026-02-30', 2, '2026-02-30'),
    ('bench append --seconds 0', 2, '--seconds'), ('bench append --records 0', 2, '--records'),
    ('bench append --rate 0', 2, '--rate'), ('bench append --threads 0', 2, '--threads'),
    ('bench append --in-flight 0', 2, '--in-flight'), ('bench append --logs 0', 2, '--logs'),
    ('bench append --replication carrier', 2, 'verbs'), ('bench append --record-bytes 2M', 2, '--record-bytes lies'),
    ('bench append --json /nonexistent/x', 1, '/nonexistent/x'), ('bench pull --records 0', 2, '--records'),
    ('bench pull --json /nonexistent/x', 1, '/nonexistent/x'), ('bench pull --consumers 0', 2, '--consumers'),
    ('bench append --producers 0', 2, '--producers'), ('bench pull --fetch-bytes 0', 2, '--fetch-bytes'),
    ('bench pull --stream nope', 1, 'nope'), ('bench pull --stream s --consumers 9', 2, '1 log'),
]
ASKING = ['stream list', 'stream create x', 'stream describe x', 'stream delete x', 'produce s', 'consume s',
          'log recover s --accept-loss', 'status', 'bench append --records 1', 'bench pull']


def test_wrong_uses_name_cause_and_fix():
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    server.produce('s', ['a'])
    for words, wanted, text in WRONG:
        code, out, err = run(LEAT, *words.split(), '-b', f'{server.host}:{server.port}', input=b'')
        equal((code, out), (wanted, ''), f'{words}: {err}')
        check_in(text, err)


def test_without_a_server_each_command_says_so():
    with ThreadPool(len(ASKING)) as pool:  # some wait for a server that starts, for ten seconds
        said = pool.map(lambda words: run(LEAT, *words.split(), '-b', '127.0.0.1:1', input=b'x\n'), ASKING)
    for words, (code, out, err) in zip(ASKING, said):
        equal((code, out), (3, ''), f'{words}: {err}')
        check_in('no server answers at 127.0.0.1:1', err)
        check_in('is leatd running there? -b HOST:PORT or LEAT_BROKERS', err)
    said = run(LEAT, 'status', '-b', '127.0.0.1:1,127.0.0.1:2')[2]
    check_in('no server answers at 127.0.0.1:1, 127.0.0.1:2 (the last: connection refused', said)
    said = run(LEAT, 'status', '-b', ','.join(f'127.0.0.{i}:10000' for i in range(1, 17)))[2]
    check(re.search(r'127.0.0.9:10000, .* and others \(the last: connection refused or closed\)\n', said), said)
    for address in ('127.0.0.1', '127.0.0.1:abc', '127.0.0.1:99999', ':7700', 'host:', 'a:1,b'):
        code, out, err = run(LEAT, 'status', '-b', address)
        equal((code, out), (2, ''), f'{address}: {err}')
        check_in('HOST:PORT', err)


def test_a_reader_and_a_writer_that_come_before_their_server_wait_for_it():
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    server.produce('s', ['a'])
    server.stop()
    reader = server.leat_start('consume', 's', '--until-end')
    writer = server.leat_start('produce', 's', stdin=subprocess.PIPE)
    for process in reader, writer:
        check_in('no server answers', line_read(process.stderr))
    server.start('--listen', server.address)
    out, err = reader.communicate(timeout=WAIT_S)
    equal((reader.returncode, out), (0, b'a\n'), err)
    _, err = writer.communicate(b'b\n', timeout=WAIT_S)
    equal(writer.returncode, 0, err)
    equal(server.values('s'), ['a', 'b'])


class LosesAnAnswer:
    """Stands in front of a server, and ends the first connection in place of its second answer (the first is that to hello)."""

    def __init__(self, server):
        self.server = server
        self.listener = socket.create_server(('127.0.0.1', 0))
        on_end(self.listener.close)
        self.address = '127.0.0.1:%d' % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        answers = 1
        with contextlib.suppress(OSError):  # the test is over
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection((self.server.host, self.server.port))
                for way in (client, server, None), (server, client, answers):
                    threading.Thread(target=self.carry, args=way, daemon=True).start()
                answers = None

    def carry(self, here, there, most):
        with contextlib.suppress(OSError):
            while (piece := here.recv(1 << 16)) and most != 0:
                most = most and most - 1
                there.sendall(piece)
        for end in here, there:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def test_a_stream_whose_making_was_not_answered_is_the_one_that_is_there():
    server = Server().start()
    for name, words in ('a', '--streamlets 2 --logs 3'), ('b', '--streamlets 1'):
        code, out, err = run(LEAT, 'stream', 'create', name, *words.split(), '-b', LosesAnAnswer(server).address)
        equal((code, err), (0, ''))
        check_in(f'stream {name}: {words[13]} streamlet', out)
    code, _, err = run(LEAT, 'stream', 'create', 'a', '-b', server.address)
    equal(code, 1, 'one that was there before')
    code, _, err = run(LEAT, 'stream', 'create', 'a', '--logs', '9', '-b', LosesAnAnswer(server).address)
    equal(code, 1, 'one of other settings')
    check_in('exists, with other settings', err)


TRAFFIC = r'(?m)^%s, [\d.]+ ([KMG]i)?B, [\d.]+ s, \d+ records/s, [\d.]+ ([KMG]i)?B/s\r?$'


def on_terminal(server, *words, **more):
    """What a command says on a terminal's standard error."""
    ours, theirs = pty.openpty()
    said = []

    def listen():
        with contextlib.suppress(OSError):  # nobody writes there any more
            while piece := os.read(ours, 65536):
                said.append(piece)

    listener = threading.Thread(target=listen)
    listener.start()
    done = tied.run([LEAT, *words], stderr=theirs, timeout=WAIT_S, env=server.environment(), **more)
    os.close(theirs)
    listener.join()
    os.close(ours)
    equal(done.returncode, 0, words)
    return b''.join(said).decode().split('\033[K')[-1]  # the progress line before it was erased


def test_who_waits_for_an_answer_is_told_so_on_a_terminal():
    server = Server().start()
    server.produce('s', ['x'])
    server.stand_still()
    ours, theirs = pty.openpty()
    process = tied.start([LEAT, 'stream', 'list'], stdout=subprocess.PIPE, stderr=theirs, env=server.environment())
    os.close(theirs)
    said = b''
    while b'still waiting' not in said:
        said += os.read(ours, 65536)
    os.kill(server.process.pid, signal.SIGCONT)
    out, _ = process.communicate(timeout=WAIT_S)
    os.close(ours)
    equal(process.returncode, 0)
    check_in('s ', out.decode())


def test_what_was_moved_is_told_in_the_same_words_by_both_ends():
    server = Server().start()
    lines = ''.join(f'{i}\n' for i in range(5000)).encode()
    said = on_terminal(server, 'produce', 's', input=lines, stdout=subprocess.DEVNULL)
    check(re.search(TRAFFIC % '5000 records', said), said)
    path = os.path.join(directory(), 'out')
    with open(path, 'wb') as out:
        said = on_terminal(server, 'consume', 's', '--until-end', stdout=out)
    check(re.search(TRAFFIC % '5000 records', said), said)
    equal(os.path.getsize(path), len(lines))
    # What reads a pipe may write to the same terminal.
    equal(on_terminal(server, 'consume', 's', '--until-end', stdout=subprocess.PIPE), '')
    for what in 'append', 'pull':
        said = server.leat('bench', what, '--records', 1000).stdout
        equal(bool(re.search(r'(?m)^  stream      bench: 1 streamlet of \d+ logs?, 1 copy, durability memory$', said)), what == 'append')
        check(re.search(r'(?m)^  throughput  (\d+|\d+\.\d\d M) records/s, [\d.]+ ([KMG]i)?B/s$', said), said)


def test_a_benchmark_keeps_the_rate_that_it_was_asked_for():
    server = Server().start()
    report = json.loads(server.leat('bench', 'append', '--producers', 8, '--rate', 2000, '--seconds', 1, '--json', '-').stdout)
    equal(report['records'], 2000)  # 20 batches; all producers at once would have sent 24
    check(report['seconds'] >= 1, report['seconds'])


def test_a_stream_s_settings_are_shown_to_people_too():
    server = Server().start()
    said = server.leat('stream', 'create', 'one', '--logs', 2).stdout
    check_in('stream one: 1 streamlet of 2 logs, 1 copy, durability disk\n', said)
    server.leat('stream', 'create', 'two', '--logs', 1, '--segment-bytes', '64K', '--max-batch-bytes', '32K', '--append-time',
                '--retention-time', '90s', '--retention-bytes', '10G')
    server.leat('stream', 'create', 'three', '--logs', 1, '--retention-time', '10m')
    check_in('stream gone is deleted\n', server.leat('stream', 'create', 'gone').stdout + server.leat('stream', 'delete', 'gone').stdout)
    check_in('\n1 copy, segments of up to 8.0 MiB, batches of up to 2.0 MiB, everything is kept\n',
             server.leat('stream', 'describe', 'one').stdout)
    check_in('\n1 copy, segments of up to 64.0 KiB, batches of up to 32.0 KiB, times of append, kept: 90 s, 10.0 GiB of each log\n',
             server.leat('stream', 'describe', 'two').stdout)
    check_in(', kept: 10 min\n', server.leat('stream', 'describe', 'three').stdout)
    rows = [line.split() for line in server.leat('stream', 'list').stdout.splitlines()]
    equal(rows[0][:6], ['STREAM', 'ID', 'STREAMLETS', 'LOGS', 'COPIES', 'DURABILITY'])
    equal({row[0]: row[2:] for row in rows[1:]}, {'one': ['1', '2', '1', 'disk', '-', '-'], 'three': ['1', '1', '1', 'disk', '10', 'min', '-'],
                                                  'two': ['1', '1', '1', 'disk', '90', 's', '10.0', 'GiB']})
    equal({s['min_copies'] for s in json.loads(server.leat('stream', 'list', '--json').stdout)}, {1})


def test_a_benchmark_whose_servers_do_not_start_says_why_once():
    code, out, err = run(LEAT, 'bench', 'recovery', '--memory', '1M', '--dir', directory())
    equal((code, out), (1, ''), err)
    equal(len(re.findall('did not start', err)), 1, err)
    check(re.search(r'did not start: leatd: a memory budget of 1 MiB is too small', err), err)


def test_one_of_a_kind_has_no_plural():
    server = Server('--cores', '1').start()
    server.leat('stream', 'create', 's', '--logs', 1)
    said = server.leat('produce', 's', input=b'x\n').stderr
    said += server.leat('stream', 'describe', 's').stdout + server.leat('status').stdout
    said += server.leat('bench', 'append', '--records', 1, '--logs', 1).stdout
    check_in('1 streamlet of 1 log,', said)
    check(not re.search(r'\b1 (streamlet|log|record|core)s\b(?!/)', said), said)  # "1 records/s" is a rate


def test_what_can_not_be_done_is_told_before_anything_is_made_or_waited_for():
    begun = time.monotonic()
    code, _, err = run(LEAT, 'produce', 's', '--timeout', '1s', '-b', '127.0.0.1:1', stdin=subprocess.DEVNULL)
    equal(code, 3, err)
    check(time.monotonic() - begun < 8, 'it waits for 1 s and not for the 10 that others wait', time.monotonic() - begun)
    check_in('trying for 1 s more', err)
    server = Server('--cores', '1').start()
    said = server.leat('produce', 's', '/no/such/file', code=1).stderr
    check_in('/no/such/file: No such file', said)
    equal(json.loads(server.leat('stream', 'list', '--json').stdout), [])
    server.produce('s', [f'{i:06d}' for i in range(50000)])
    with open('/dev/full', 'wb') as full:
        done = tied.run([LEAT, 'consume', 's', '--until-end'], stdout=full, stderr=subprocess.PIPE, timeout=WAIT_S,
                        env=server.environment())
    equal(done.returncode, 1)
    check_in("standard output can't be written: No space left on device", done.stderr.decode())
    said = server.leat('bench', 'append', '--stream', 's', '--records', 10, '--logs', server.describe('s')['logs'], code=None).stderr
    check_in("stream 's' exists: what is measured is appended to what is there", said)


if __name__ == '__main__':
    main()
