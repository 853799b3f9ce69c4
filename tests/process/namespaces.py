# SPDX-License-Identifier: Apache-2.0
"""A test that wants a network of its own runs itself again in new namespaces of the kernel."""
import os
import subprocess
import sys

from rig import Skipped, WAIT_S


# A program that runs itself again keeps its process id, so this marks it alone: tests that it starts make namespaces of their own.
INSIDE = f'inside {os.getpid()}'


def enter(prepare):
    """Run this program again in a network and a mount namespace of its own, after the shell command `prepare`.
    Returns at once in them, and where this account may not make any: need() tells which."""
    if os.environ.get('LEAT_NETNS') in (INSIDE, 'refused'):
        return
    inside = ['unshare', '--net', '--mount', 'sh', '-c', prepare + '; exec "$@"', 'sh']
    try:
        allowed = subprocess.run([*inside, 'true'], capture_output=True, timeout=WAIT_S).returncode == 0
    except OSError:
        allowed = False
    os.environ['LEAT_NETNS'] = INSIDE if allowed else 'refused'
    if allowed:
        os.execvp(inside[0], [*inside, sys.executable, '-B', *sys.argv])


def need():
    if os.environ.get('LEAT_NETNS') != INSIDE:
        raise Skipped('this account may not make network namespaces')
