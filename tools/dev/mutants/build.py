# SPDX-License-Identifier: Apache-2.0
"""One build of the whole project in which every rule of some folders can be broken, and what is there to run."""
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import threading

import sites

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


# Of these folders, only the sources that data's safety hangs on: what is flushed, fenced, mapped and written into by others.
ONLY = {'os': ['arena.c', 'disk.c', 'disk_queue.c', 'disk_together.c', 'net.c', 'net_bytes.c', 'net_open.c', 'net_unix.c', 'pools.c', 'rmem.c', 'rmem_host.c', 'rmem_shm.c',
                'rmem_verbs.c', 'rmem_verbs_connect.c', 'rmem_verbs_source.c', 'rmem_verbs_target.c', 'rmem_verbs_writer.c', 'step.c']}
OF_TESTS = ['probe.c']  # what the simulator knows of a module: no rule of the product
# Numbers of each file: a change of one file leaves those of all others, and what is compiled of them, as they are. Headers have the
# first numbers, as a new header is rarer than a new source.
NUMBERS, HEADERS_MAX, FILES_MAX = 1024, 64, 512
FUNCTION = re.compile(rb'^\{|\binline\b', flags=re.M)  # a header without one is not parsed: that costs a second
SANITIZERS = ['-Db_sanitize=address,undefined', '-Db_lundef=false']
SAID_MAX = 4000  # characters of what a failed step said


class Build:
    def __init__(self, out, folders, jobs=2, sanitized=False):
        self.sanitized = sanitized  # with address and undefined-behaviour sanitizers, as tools/check's stage asan
        self.jobs, self.compiling = jobs, threading.Lock()
        self.out, self.source, self.build = out, os.path.join(out, 'source'), os.path.join(out, 'build')
        self.folders, self.mutants, self.functions, self.unbroken = folders, [], {}, {}
        self.commands, self.words, self.around = {}, {}, b''
        self.simulated = True  # the simulator is built, too
        self.suites = None  # tests of these alone are built and run; None: all
        self.tests = ''  # a regular expression, which their names match

    def names(self):
        """All files whose rules may be broken, with how each is compiled; their places say which numbers are whose."""
        if self.commands:
            return self.commands
        plain = os.path.join(self.out, 'plain')
        if not os.path.exists(os.path.join(plain, 'build.ninja')):
            run('meson', 'setup', plain, ROOT, '--buildtype=release')
        run('ninja', '-C', plain, 'build.ninja')  # it may be of another tree: files have come and gone since
        with open(os.path.join(plain, 'compile_commands.json'), encoding='utf-8') as file:
            commands = json.load(file)
        sources = {}
        for entry in sorted(commands, key=lambda e: e['file']):
            name = name_of(entry)
            folder, file = name.split('/')[0], name.split('/')[-1]
            if folder in self.folders and file in ONLY.get(folder, [file]) and file not in OF_TESTS:
                sources.setdefault(name, entry)
        headers = {name: sources[nearest(name, sources)] for folder in self.folders for name in headers_of(folder)}
        for files, first, most in ((headers, 0, HEADERS_MAX), (sources, HEADERS_MAX, FILES_MAX - HEADERS_MAX)):
            if len(files) > most:
                raise ValueError(f'{len(files)} files have functions to break, and there are numbers for {most}')
            for at, (name, entry) in enumerate(files.items(), first):
                self.commands[name] = (1 + NUMBERS * at, entry)
        return self.commands

    def rewrite_all(self):
        for name in self.names():
            self.rewrite(name)

    def everywhere(self):
        """A digest of what a source is rewritten by besides itself: the headers, and the programs that do it."""
        names = subprocess.run(['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard', '*.h', '*.def', ':!tests',
                                'tools/dev/mutants/sites.py'], check=True, capture_output=True, text=True).stdout.splitlines()
        whole = hashlib.sha256()
        for name in sorted(names):
            whole.update(read(os.path.join(ROOT, name)))
        return whole.digest()

    def compile(self):
        self.copy()
        switch = os.path.abspath(os.path.join(self.out, 'switch.o'))
        run('cc', '-O1', '-c', f'-DLEAT_MUTANTS_MAX={1 + NUMBERS * FILES_MAX}', '-o', switch, os.path.join(HERE, 'switch.c'))
        if not os.path.exists(os.path.join(self.build, 'build.ninja')):
            # Speed is not what is measured, and what a broken rule leaves undone is not to be warned of.
            compiler, options = (['env', 'CC=clang'], SANITIZERS) if self.sanitized else ([], [])
            run(*compiler, 'meson', 'setup', self.build, self.source, '--buildtype=release', '-Doptimization=1', *options,
                f'-Dc_args=-include {HERE}/switch.h -w', f'-Dc_link_args={switch}')
        # First what tests there are: a new one is none of those that it knew.
        run('ninja', '-C', self.build, 'build.ninja')
        programs = {word for command, *_ in self.unit_tests().values() for word in command}
        programs = [self.simulator] * self.simulated + [word for word in programs if self.is_program(word)]
        run('ninja', '-C', self.build, f'-j{self.jobs}', *sorted(os.path.relpath(p, self.build) for p in programs))

    def copy(self):
        names = subprocess.run(['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard'], check=True, capture_output=True,
                               text=True).stdout.splitlines()
        for name in names:
            if name not in self.functions:
                put(os.path.join(self.source, name), os.path.join(ROOT, name))
                if os.path.exists(self.kept(name)):  # it has been rewritten for another run
                    os.unlink(self.kept(name))

    def rewrite(self, name):
        """The words of its functions."""
        if name in self.words:
            return self.words[name]
        first, entry = self.names()[name]
        path = os.path.join(ROOT, name)
        self.around = self.around or self.everywhere()
        digest = hashlib.sha256(self.around + read(path) + f'{entry["command"]} {first}'.encode()).hexdigest()
        there, kept = os.path.join(self.source, name), self.kept(name)
        if not (os.path.exists(there) and os.path.exists(kept) and json.loads(read(kept))['digest'] == digest):
            source = sites.Source(path, name, shlex.split(entry['command']), entry['directory'])
            if len(source.mutants) > NUMBERS:
                raise ValueError(f'{name} has {len(source.mutants)} mutants')
            for number, mutant in enumerate(source.mutants, first):
                mutant.number = number
            write(there, source.rewritten().encode())
            write(kept, json.dumps({'digest': digest, 'functions': source.functions, 'words': source.words,
                                    'mutants': [vars(m) for m in source.mutants]}).encode())
        saved = json.loads(read(kept))
        self.functions[name], self.words[name] = saved['functions'], saved['words']
        self.mutants += [sites.Mutant.again(row) for row in saved['mutants']]
        return self.words[name]

    def rewritten(self):
        """The files that earlier runs have rewritten: to put back what they were costs as much as another build of them."""
        return {name for name in self.names() if os.path.exists(self.kept(name))}

    def kept(self, name):
        return os.path.join(self.out, 'kept', name + '.json')

    def equivalent(self, mutant):
        """Does the compiler make the same of it as of what is not broken? One at a time: a large source takes much memory. A header's
        functions are compiled by themselves: what is the same there is the same in whatever includes the header."""
        with self.compiling:
            return self.assembly(mutant.file, mutant.number) == self.assembly(mutant.file, 0)

    def assembly(self, name, number):
        if number == 0 and name in self.unbroken:
            return self.unbroken[name]
        with open(os.path.join(self.build, 'compile_commands.json'), encoding='utf-8') as file:
            source = name_of(self.names()[name][1])
            entry = next(e for e in json.load(file) if e['file'].endswith('/source/' + source))
        command = shlex.split(entry['command'])
        command = command[:command.index('-MD')] + [f'-DLEAT_MUTANT_FIXED={number}', '-O2', '-S', '-o', '-']
        text = None
        if source != name:  # the compiler leaves out inline functions that nothing uses
            used = ', '.join(f'(void *){function}' for function in sorted(self.functions[name]))
            text = f'#include "{os.path.join(self.source, name)}"\nvoid *leat_mutants_used[] = {{{used}}};\n'.encode()
        command += ['-x', 'c', '-'] if text else [entry['file']]
        out = subprocess.run(command, cwd=entry['directory'], check=True, input=text, capture_output=True).stdout
        digest = hashlib.sha256(out).digest()
        if number == 0:
            self.unbroken[name] = digest
        return digest

    def is_program(self, word):
        return word.startswith(self.build + '/') and '/../' not in word

    def unit_tests(self):
        """name: (command, environment, folder to run in, suites) of what runs without other processes."""
        out = subprocess.run(['meson', 'introspect', '--tests', self.build], check=True, capture_output=True, text=True).stdout
        tests = {}
        for test in json.loads(out):
            suites = {suite.split(':')[-1] for suite in test['suite']}
            ours = any(self.is_program(word) for word in test['cmd'])
            if ours and re.search(self.tests, test['name']) and not suites & {'process', 'cluster', 'sim', 'bench', 'clients', 'vm'} and (
                    self.suites is None or suites & self.suites):
                tests[test['name']] = (test['cmd'], test['env'], test['workdir'] or self.build, suites)
        return tests

    @property
    def simulator(self):
        return os.path.join(self.build, 'tests/sim/leat-sim')


def name_of(entry):
    """Of a row of compile_commands.json: its source, as the tables name it."""
    return os.path.relpath(os.path.realpath(os.path.join(entry['directory'], entry['file'])), ROOT)


def headers_of(folder):
    """Those with functions."""
    names = []
    for where, _, files in os.walk(os.path.join(ROOT, folder)):
        names += [os.path.relpath(os.path.join(where, file), ROOT) for file in files if file.endswith('.h')]
    return [name for name in sorted(names) if FUNCTION.search(read(os.path.join(ROOT, name)))]


def nearest(header, sources):
    """The source that a header is compiled like: one of its own folder, or of a folder as near as there is."""
    return max(sorted(sources), key=lambda name: len(os.path.commonpath([os.path.dirname(header), os.path.dirname(name)])))


def run(*command):
    """What a step of the build says is told where it fails, from its first error on."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace', check=False)
    if done.returncode != 0:
        at = max(done.stdout.find('FAILED: '), 0)
        raise ValueError(f'{command[0]} {command[1]} failed:\n{done.stdout[at:at + SAID_MAX]}')


def put(there, here):
    """A copy, where it is not one yet. It has a time of its own: what changed here while a build ran is newer there than what that
    build made of it before."""
    if os.path.islink(here) or os.path.exists(there) and read(there) == read(here):
        return
    os.makedirs(os.path.dirname(there), exist_ok=True)
    shutil.copy(here, there)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def write(path, text):
    """What is there already keeps its time."""
    if os.path.exists(path) and read(path) == text:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(text)
