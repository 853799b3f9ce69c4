# SPDX-License-Identifier: Apache-2.0
"""The places of a C source, or of a header's inline functions, where a rule can be broken, and the text with all of them behind one
switch.

clang tells where they are (its syntax tree as JSON, one file at a time); the text is rewritten here. Each mutant has a number;
leat_mutant(NUMBER) in the rewritten text is 1 where LEAT_MUTANT is that number (switch.h). So all mutants of all files are one
build, and a mutant of a header is the same one in whatever includes the header. What is compiled with no mutant chosen does what the
source says.

Mutants (their kind is the first word of a row):

  negate     the condition of an if, a while or a ?: is negated
  clause     an operand of && is taken for true, one of || for false
  compare    < becomes <=, <= becomes <, > becomes >=, >= becomes >, == becomes !=, != becomes ==
  constant   a number is one more
  operands   a + b becomes a - b; a - b becomes b - a, of pointers a + b
  turn       a < b becomes b < a; <=, > and >= likewise
  swap       a / b becomes b / a; %, << and >> likewise
  arguments  two neighbours of the same type change places in a call
  branches   the two values of a ?: change places, where its condition is an && or || (elsewhere negate or compare does the same)
  leave      a call or an assignment is left out
  return     an early return is left out
  jump       a continue, or a break out of a loop, is left out
  swallow    an error that is returned becomes LEAT_OK
  result     a truth value that is returned is negated

Not mutated: what stands inside macros with arguments (assertions among them), static data, case labels, and what only says
something (QUIET)."""
import hashlib
import json
import os
import re
import subprocess

# Calls that say something, give memory back, or make a test see more: leaving one out breaks no rule of data.
QUIET = re.compile(r'^(leat_node_log_\w+|leat_error_\w+|leat_count\w*|free|leat_free\w*|leat_mem_free|snprintf|__builtin_\w+|memset)$')
FLIPPED = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
TURNED = {'<': '>', '<=': '>=', '>': '<', '>=': '<='}
# Calls to which it is the same, or only the sign of what they give changes: equality is what they are asked for.
EITHER_WAY = re.compile(r'^(mem|str|strn)cmp$|(^|_)(min|max|equal|same)(_|$)')
# A line that only says whose thread this is. It is nothing in the build that is broken (a slow check), so no verdict hangs on it.
OWNER = re.compile(rb'^[ \t]*LEAT_ASSERT_OWNER\([^;\n]*\);[ \t]*$', flags=re.M)
CONSTANT_PARENTS = {'CaseStmt', 'ConstantExpr', 'UnaryExprOrTypeTraitExpr', 'OffsetOfExpr', 'StaticAssertDecl', 'EnumDecl',
                    'DesignatedInitExpr', 'GenericSelectionExpr'}


class Mutant:
    """One broken rule: where it is and what it does. `number` is given by who builds."""

    def __init__(self, kind, function, line, what):
        self.kind, self.function, self.line, self.what = kind, function, line, what
        self.number = self.ordinal = 0
        self.file = self.digest = None

    @classmethod
    def again(cls, row):
        mutant = cls.__new__(cls)
        vars(mutant).update(row)
        return mutant

    def key(self):
        return f'{self.file}:{self.function}:{self.kind}:{self.ordinal}'

    def __str__(self):
        return f'{self.file}:{self.line} {self.function} {self.kind} {self.what}'


class Edit:
    """The text from `begin` to `end` becomes write(text_of), where text_of(b, e) is the rewritten text of a part of it."""

    def __init__(self, begin, end, write):
        self.begin, self.end, self.write, self.inner = begin, end, write, []


class Source:
    def __init__(self, path, name, command, directory):
        with open(path, 'rb') as file:
            self.bytes = file.read()
        self.name = name
        self.mutants, self.edits = [], []
        self.functions, self.words = {}, {}  # name: digest of its words, and they themselves
        for node in tree(command, directory, path):
            self.function_take(node)

    def text(self, begin, end):
        return self.bytes[begin:end].decode()

    def place(self, node):
        """(begin, end) of a node's text, or None where macros with arguments hide it."""
        ends = []
        for side in ('begin', 'end'):
            at = node.get('range', {}).get(side, {})
            if 'expansionLoc' in at:
                at = at['expansionLoc']
                if 'offset' not in at or self.bytes[at['offset'] + at['tokLen']:].lstrip()[:1] == b'(':
                    return None
            if 'offset' not in at or 'includedFrom' in at:
                return None
            ends.append(at['offset'] + (at['tokLen'] if side == 'end' else 0))
        return tuple(ends) if ends[0] < ends[1] else None

    def function_take(self, node):
        place = self.place(node)
        if place is None:
            return
        self.function = node['name']
        self.words[self.function] = words(self.bytes[place[0]:place[1]])
        self.functions[self.function] = hashlib.sha256(self.words[self.function].encode()).hexdigest()[:12]
        self.returns = node['type']['qualType'].split('(')[0].strip()
        body = body_of(node)
        self.last = body['inner'][-1] if body.get('inner') else None
        self.counts = {}
        self.walk(body, [node])

    def mutant(self, kind, place, what):
        mutant = Mutant(kind, self.function, self.bytes.count(b'\n', 0, place[0]) + 1, re.sub(r'\s+', ' ', what)[:60])
        mutant.ordinal = self.counts[kind] = self.counts.get(kind, 0) + 1
        mutant.file, mutant.digest = self.name, self.functions[self.function]
        self.mutants.append(mutant)
        return mutant

    def edit(self, kind, place, write, what=None):
        """write(on, text): the new text; `on` is the switch's text."""
        mutant = self.mutant(kind, place, what or self.text(*place))
        self.edits.append(Edit(*place, lambda text_of: write(f'leat_mutant({mutant.number})', text_of, mutant.number)))

    # ---- the tree ----

    def walk(self, node, parents):
        kind = node.get('kind')
        if kind in CONSTANT_PARENTS and kind != 'CaseStmt':
            return
        if kind == 'VarDecl' and node.get('storageClass') == 'static':
            return
        if kind == 'CallExpr' and QUIET.match(callee(node)):
            return
        look = getattr(self, 'see_' + kind, None) if kind else None
        if look:
            look(node, parents)
        children = node.get('inner', [])
        for at, child in enumerate(children):
            if kind == 'CaseStmt' and at < len(children) - 1:
                continue
            self.walk(child, parents + [node])
            if is_body(node, at):
                self.statement(child)

    def condition(self, node):
        place = self.place(node)
        core = bare(node)
        if place is None or core.get('opcode') in ('==', '!=', '&&', '||') or core['kind'] == 'IntegerLiteral':
            return  # its parts are mutated
        self.edit('negate', place, lambda on, text_of, _: f'(({text_of(*place)}) ? !{on} : {on})')

    def see_IfStmt(self, node, parents):
        self.condition(node['inner'][0])

    see_WhileStmt = see_IfStmt

    def see_ConditionalOperator(self, node, parents):
        self.condition(node['inner'][0])
        place = self.place(node['inner'][0])
        if place is not None and bare(node['inner'][0]).get('opcode') in ('&&', '||'):
            self.edit('branches', place, lambda on, text_of, _: f'(({text_of(*place)}) ? !{on} : {on})')

    def see_CallExpr(self, node, parents):
        arguments = [] if EITHER_WAY.search(callee(node)) else node['inner'][1:]
        for left, right in zip(arguments, arguments[1:]):
            a, b = self.place(left), self.place(right)
            if None in (a, b) or type_of(left) != type_of(right) or constant(left) and constant(right):
                continue
            if self.text(*a) != self.text(*b):
                self.change_places(self.mutant('arguments', (a[0], b[1]), self.text(a[0], b[1])), left, a, b)

    def change_places(self, mutant, left, a, b):
        """Each has the other's text beside its own. A ?: would convert numbers to something between them, so their type is said."""
        type_ = type_of(left)
        cast = '' if '*' in type_ or type_.startswith(('struct ', 'union ')) else f'({left["type"]["qualType"]})'
        for place, other in ((a, b), (b, a)):
            def write(text_of, place=place, other=self.text(*other)):
                return f'(leat_mutant({mutant.number}) ? {cast}({other}) : {cast}({text_of(*place)}))'
            self.edits.append(Edit(*place, write))

    def see_BinaryOperator(self, node, parents):
        op, (left, right) = node['opcode'], node['inner']
        whole, a, b = self.place(node), self.place(left), self.place(right)
        if None in (whole, a, b):
            return
        if op in ('&&', '||'):
            for part, place in ((left, a), (right, b)):
                if bare(part).get('opcode') != op:
                    # The switch comes first, so that it is come to whatever the operand is.
                    first, then = ('', '||') if op == '&&' else ('!', '&&')
                    self.edit('clause', place,
                              lambda on, text_of, _, p=place, f=first, t=then: f'({f}{on} {t} ({text_of(*p)}))')
        elif op in ('==', '!='):
            self.edit('compare', whole, lambda on, text_of, _: f'((({text_of(*a)}) {op} ({text_of(*b)})) != {on})')
        elif op in FLIPPED:
            # An operand of || that is never true is one that is left out.
            never = op == '>' and self.text(*b) == '0' and bare_parent(parents).get('opcode') == '||'
            kinds = [('compare', FLIPPED[op])] + ([] if never else [('turn', TURNED[op])])
            self.twice(kinds, whole, a, b, op, '*' in left['type']['qualType'])
        elif op in ('/', '%', '<<', '>>') and not constant(left) and not constant(right) and self.text(*a) != self.text(*b):
            self.twice([('swap', None)], whole, a, b, op, False)
        elif op in ('+', '-') and not constant(left) and not constant(right):
            pointers = '*' in left['type']['qualType'] + right['type']['qualType']
            if '*' in right['type']['qualType']:
                return
            if op == '+':
                self.twice([('operands', '-')], whole, a, b, '+', pointers)
            else:
                self.twice([('operands', '+' if pointers else None)], whole, a, b, '-', pointers)

    def twice(self, kinds, whole, a, b, op, pointers):
        """Both operands are taken once, and then one of several operators, or the operands the other way round (None).
        kinds: (kind, operator) of each mutant."""
        mutants = [(self.mutant(kind, whole, self.text(*whole)), other) for kind, other in kinds]

        def write(text_of):
            n = mutants[0][0].number
            left = f'__auto_type l{n}_ = ({text_of(*a)}){"" if pointers else " + 0"};'
            right = f'({text_of(*b)}){"" if pointers and op in FLIPPED else " + 0"};'  # a null pointer takes no + 0
            value = f'l{n}_ {op} r{n}_'
            for mutant, other in mutants:
                changed = f'l{n}_ {other} r{n}_' if other else f'r{n}_ {op} l{n}_'
                value = f'leat_mutant({mutant.number}) ? {changed} : {value}'
            return f'__extension__({{ {left} __auto_type r{n}_ = {right} {value}; }})'
        self.edits.append(Edit(*whole, write))

    def see_IntegerLiteral(self, node, parents):
        raw = node['range']['begin']
        place = self.place(node)
        if place is None or 'expansionLoc' in raw:
            return
        for parent in reversed(parents):
            if parent['kind'] == 'ImplicitCastExpr' and parent.get('castKind') == 'NullToPointer':
                return
            if parent['kind'] not in ('ImplicitCastExpr', 'ParenExpr'):
                break
        self.edit('constant', place, lambda on, text_of, _: f'({self.text(*place)} + {on})',
                  f'{self.text(*place)} in {self.text(*(self.place(parent) or place))}')

    def see_ReturnStmt(self, node, parents):
        place = self.place(node)
        if place is None:
            return
        if node is not self.last and len(parents) > 1:
            self.edit('return', place,
                      lambda on, text_of, n: f'for (int m{n}_ = !{on}; m{n}_; m{n}_ = 0) {text_of(*place)}')
        if not node.get('inner'):
            return
        value = node['inner'][0]
        at = self.place(value)
        if at is None:
            return
        if self.returns == 'leat_err' and self.text(*at) != 'LEAT_OK':
            self.edit('swallow', at, lambda on, text_of, n:
                      f'__extension__({{ leat_err e{n}_ = ({text_of(*at)}); {on} ? LEAT_OK : e{n}_; }})')
        elif self.returns in ('bool', '_Bool') and bare(value).get('opcode') not in ('==', '!=', '&&', '||'):
            self.edit('result', at, lambda on, text_of, _: f'(({text_of(*at)}) ? !{on} : {on})')

    def see_ContinueStmt(self, node, parents):
        place = self.place(node)
        if place is not None:
            self.edit('jump', place, lambda on, text_of, _: f'__extension__({{ if (!{on}) {self.text(*place)}; }})')

    def see_BreakStmt(self, node, parents):
        inner = [p['kind'] for p in parents if p['kind'] in ('ForStmt', 'WhileStmt', 'DoStmt', 'SwitchStmt')]
        if inner and inner[-1] != 'SwitchStmt':
            self.see_ContinueStmt(node, parents)

    def statement(self, node):
        kind = node.get('kind')
        place = self.place(node)
        called = kind == 'CallExpr' and not QUIET.match(callee(node))
        assigned = (kind == 'BinaryOperator' and node['opcode'] == '=') or kind == 'CompoundAssignOperator' or (
            kind == 'UnaryOperator' and node['opcode'] in ('++', '--'))
        if place is not None and (called or assigned):
            self.edit('leave', place, lambda on, text_of, _: f'({on} ? (void)0 : (void)({text_of(*place)}))')

    # ---- the text ----

    def rewritten(self):
        """What encloses comes before what it encloses."""
        top, open_ = [], []
        for edit in sorted(self.edits, key=lambda e: (e.begin, -e.end)):
            while open_ and open_[-1].end <= edit.begin:
                open_.pop()
            (open_[-1].inner if open_ else top).append(edit)
            open_.append(edit)
        return self.part(0, len(self.bytes), top)

    def part(self, begin, end, edits):
        out, at = [], begin
        for edit in edits:
            if edit.begin < at or edit.end > end:
                continue
            out.append(self.text(at, edit.begin))
            out.append(edit.write(lambda b, e, inside=edit.inner: self.part(b, e, inside)))
            at = edit.end
        out.append(self.text(at, end))
        return ''.join(out)


def words(text):
    """What a text says to the compiler, as far as can be told without one: comments, line breaks and OWNER don't count."""
    return b' '.join(OWNER.sub(b' ', re.sub(rb'/\*.*?\*/|//[^\n]*', b' ', text, flags=re.S)).split()).decode()


def bare(node):
    while node['kind'] in ('ImplicitCastExpr', 'ParenExpr') and node.get('inner'):
        node = node['inner'][0]
    return node


def bare_parent(parents):
    """What a node is an operand of, parentheses and conversions apart."""
    return next(p for p in reversed(parents) if p['kind'] not in ('ImplicitCastExpr', 'ParenExpr'))


def type_of(node):
    return node['type'].get('desugaredQualType', node['type']['qualType'])


def constant(node):
    return bare(node)['kind'] in ('IntegerLiteral', 'CharacterLiteral')


def callee(node):
    at = bare(node['inner'][0])
    return at.get('referencedDecl', {}).get('name', '')


def is_body(node, at):
    kind, count = node.get('kind'), len(node.get('inner', []))
    if kind in ('CompoundStmt', 'DefaultStmt', 'LabelStmt'):
        return True
    if kind == 'IfStmt':
        return at > 0
    return kind in ('ForStmt', 'WhileStmt', 'CaseStmt') and at == count - 1


def tree(command, directory, path):
    """The definitions of functions in the file itself, as clang's JSON has them."""
    words = []
    skip = 0
    for word in command:
        if skip:
            skip -= 1
        elif word in ('-o', '-MQ', '-MF'):
            skip = 1
        elif re.match(r'-(I|D|std|isystem|U)', word):
            words.append(word)
    # ccache, where it stands for clang, would name the file otherwise (CCACHE_BASEDIR), and no definition would be found.
    done = subprocess.run(['clang', *words, '-w', '-fsyntax-only', '-Xclang', '-ast-dump=json', path], cwd=directory, check=False,
                          capture_output=True, env={**os.environ, 'CCACHE_DISABLE': '1'})
    if done.returncode != 0:  # a header that needs another before it, for instance
        raise ValueError(f'clang does not compile {path} by itself:\n{done.stderr.decode(errors="replace")[:2000]}')
    current = None
    for node in json.loads(done.stdout)['inner']:
        # A file is named only where it is another than that of the place before.
        for at in places(node):
            current = at.get('file', current)
            if at is node.get('loc') or at is node.get('loc', {}).get('expansionLoc'):
                node['where'] = current
        if node['kind'] == 'FunctionDecl' and body_of(node) and os.path.realpath(
                os.path.join(directory, node.get('where') or '')) == os.path.realpath(path):
            yield node


def body_of(function):
    """Attributes that its declaration has (LEAT_NODISCARD) come behind it."""
    return next((part for part in function.get('inner', []) if part['kind'] == 'CompoundStmt'), None)


def places(node):
    """All locations below a node, in the order in which clang wrote them."""
    stack = [node]
    while stack:
        at = stack.pop()
        if isinstance(at, list):
            stack.extend(reversed(at))
        elif isinstance(at, dict):
            if 'offset' in at or 'file' in at:
                yield at
            stack.extend(v for k, v in reversed(list(at.items())) if isinstance(v, (dict, list)))
