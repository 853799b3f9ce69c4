# SPDX-License-Identifier: Apache-2.0
"""Who may change the cluster, on one machine: the Unix socket in the data directory. Over a network: netns.py."""
import os
import shutil
import socket
import stat

import tied
from rig import LEAT, Server, Skipped, WAIT_S, check, check_in, directory, equal, main

STRANGER = 65534  # an account that is not this one, nor root


def asked(*words, code, cwd=None, **environment):
    """What `leat` says where nothing names a server but what is given."""
    clean = {k: v for k, v in os.environ.items() if k not in ('LEAT_BROKERS', 'XDG_STATE_HOME')}
    done = tied.run([LEAT, *words], capture_output=True, timeout=WAIT_S, cwd=cwd, env={**clean, **environment})
    said = done.stderr.decode()
    equal(done.returncode, code, said)
    return said


def drain_is_taken(server_words, **more):
    """Taken means here: it is looked at, and refused for what it asks."""
    check_in("no node 'nobody'", asked('node', 'drain', 'nobody', *server_words, code=1, **more))


def at_socket(server):
    return ['-b', 'unix:' + server.path('leatd.sock')]


def test_the_socket_is_the_servers_own_and_serves_all_requests():
    server = Server().start()
    mode = os.lstat(server.path('leatd.sock')).st_mode
    check(stat.S_ISSOCK(mode), oct(mode))
    equal(stat.S_IMODE(mode), 0o600)
    drain_is_taken(at_socket(server))
    drain_is_taken(['-b', server.address])  # nothing controls access yet: any account of this machine may
    server.leat('produce', 's', *at_socket(server), input=b'one\ntwo\n')
    equal(server.leat('consume', 's', '--until-end', *at_socket(server)).stdout.splitlines(), ['one', 'two'])
    server.stop()
    check(not os.path.lexists(server.path('leatd.sock')), 'it is left behind')
    said = asked('node', 'drain', 'nobody', *at_socket(server), code=3)
    check_in('no server answers at unix:', said)


def test_without_a_named_server_the_socket_of_the_usual_directory_is_asked():
    state = directory()
    server = Server(data=os.path.join(state, 'leat')).start()
    drain_is_taken([], XDG_STATE_HOME=state)
    said = asked('streamlet', 'move', 'nothing', '0', 'nobody', code=1, XDG_STATE_HOME=state)
    check_in("no stream 'nothing'", said)
    server.kill()  # its file stays, and nobody listens there
    said = asked('node', 'drain', 'nobody', code=3, XDG_STATE_HOME=state)
    check_in('127.0.0.1:7700', said)


def test_a_socket_that_a_killed_server_left_is_taken_over():
    server = Server().start()
    server.kill()
    check(os.path.lexists(server.path('leatd.sock')), 'it was removed')
    server.start()
    drain_is_taken(at_socket(server))
    other = Server(data=server.data)
    code, _ = other.start_refused()  # it does not take the name away from the one that runs
    equal(code, 3)
    drain_is_taken(at_socket(server))


def test_what_is_no_socket_is_left_alone():
    server = Server().start()
    server.stop()
    with open(server.path('leatd.sock'), 'w') as file:
        file.write("somebody's")
    server.start()
    check_in('something else has that name', server.node_log())
    drain_is_taken(['-b', server.address])
    server.stop()
    with open(server.path('leatd.sock')) as file:
        equal(file.read(), "somebody's")


def test_another_account_is_shown_out():
    server = Server().start()
    path = server.path('leatd.sock')
    become = ['setpriv', '--reuid', str(STRANGER), '--regid', str(STRANGER), '--clear-groups', '--']
    if tied.run([*become, 'true'], capture_output=True).returncode != 0:
        raise Skipped('this account may not become another one')
    program = 'import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(20)\n' \
              's.connect(sys.argv[1])\nsys.exit(len(s.recv(1)))'

    def stranger():
        return tied.run([*become, 'python3', '-c', program, path], capture_output=True, timeout=WAIT_S)
    for place in (server.home, server.data):
        os.chmod(place, 0o755)
    check_in('PermissionError', stranger().stderr.decode())
    os.chmod(path, 0o666)  # so does whoever unpacks a backup without its modes
    equal(stranger().returncode, 0, 'it was let in')
    server.node_log_wait(rf'refused at unix:leatd.sock: process \d+ of account {STRANGER}; only')
    drain_is_taken(at_socket(server))


def test_a_path_longer_than_a_sockets_address_works():
    deep = os.path.join(directory(), *['a' * 60] * 4)
    server = Server(data=os.path.join(deep, 'data')).start()
    drain_is_taken(['-b', 'unix:leatd.sock'], cwd=server.data)
    said = asked('status', *at_socket(server), code=2)
    check_in('at most 107 bytes', said)


def test_a_removed_data_directory_leaves_the_port():
    server = Server().start()
    shutil.rmtree(server.data)
    drain_is_taken(['-b', server.address])
    server.kill()


def test_whoever_breaks_off_harms_nobody():
    server = Server().start()
    for what in (b'', b'\0', b'x' * 4096):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(server.path('leatd.sock'))
            try:
                s.sendall(what)
            except BrokenPipeError:
                pass
    drain_is_taken(at_socket(server))


if __name__ == '__main__':
    main()
