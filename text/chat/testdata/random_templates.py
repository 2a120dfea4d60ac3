"""Makes random templates and writes what Jinja, in the environment of transformers, gives for each.

    python3 random_templates.py [COUNT [SEED [FILE]]]        (needs jinja2 3.1)

Expressions are made by their type, so that most of them work; now and then a value of another type stands in
one, so that errors are among the answers.
"""

import json
import pathlib
import random
import sys

import jinja2
from environment import MESSAGES, render

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 300
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 27
FILE = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else pathlib.Path(__file__).parent / "random.json")
r = random.Random(SEED)

WORDS = ["a", "Hello", "two words", " padded ", "ÄÖ straße", "你好", "x\\ny", "it's", 'a \\"q\\"', "", "0", "42", "-3.5", "tab\\t",
         "ǅ ﬁ", "🙂 e\\u0301", "<b>&amp;</b>", "a-b (c)", "A,b,,c", "line1\\nline2\\n\\nline4", "under_score", "\\x41\\101", "100%", "{}", "<", "&'x'"]
NAMES = ["a", "b", "c", "d", "items", "name", "role"]


def pick(*makers):
    return r.choice(makers)()


def text(s):
    return ("'" + s.replace("'", "\\'") + "'") if r.random() < 0.8 else '"' + s.replace('\\"', "'") + '"'


class Scope:
    """Variables that exist, by type."""

    def __init__(self):
        self.vars = {t: [] for t in TYPES}

    def name(self, t):
        return r.choice(self.vars[t]) if self.vars[t] else None


def integer(d):
    if d <= 0 or r.random() < 0.3:
        return r.choice(["0", "1", "2", "3", "-1", "7", "10", "255", "1_000", "0x1F", "0b101", "0o17", "-0"])
    return pick(
        lambda: f"({integer(d-1)} {r.choice(['+', '-', '*', '//', '%'])} {integer(d-1)})",
        lambda: f"({integer(d-1)} ** {r.choice('0123')})",
        lambda: f"{string(d-1)}|length", lambda: f"{array(d-1)}|length", lambda: f"({array(d-1)})|count",
        lambda: f"({string(d-1)}).{r.choice(['find', 'rfind', 'count', 'index', 'rindex'])}({string(0)})",
        lambda: f"({string(d-1)}).{r.choice(['find', 'count', 'rfind'])}({string(0)}, {integer(0)}, {integer(0)})",
        lambda: f"({real(d-1)})|int", lambda: f"({string(d-1)})|int({integer(0)})",
        lambda: f"({string(0)})|int(default={integer(0)}, base={r.choice(['2', '8', '16', '0', '10'])})",
        lambda: f"-{integer(d-1)}", lambda: f"{integer(d-1)}|abs", lambda: f"[{integer(d-1)}, {integer(d-1)}]|{r.choice(['sum', 'max', 'min', 'first', 'last'])}",
        lambda: f"({array(d-1)}).{r.choice(['count', 'index'])}({value(d-1)})",
        lambda: f"({integer(d-1)} if {boolean(d-1)} else {integer(d-1)})",
        lambda: f"({string(d-1)})|wordcount", lambda: f"{integer(d-1)}|round({r.choice(['0', '-1', '-2', '1'])})",
        lambda: SCOPE.name("integer") or "5",
    )


def real(d):
    if d <= 0 or r.random() < 0.3:
        return r.choice(["0.0", "1.5", "2.675", "-0.5", "1e16", "1e-5", "123456789.125", "3.0", "0.1", "1_0.5"])
    return pick(
        lambda: f"({real(d-1)} {r.choice(['+', '-', '*', '/', '//', '%'])} {number(d-1)})",
        lambda: f"({integer(d-1)} / {integer(d-1)})", lambda: f"({number(d-1)})|float", lambda: f"({string(0)})|float({real(0)})",
        lambda: f"({real(d-1)})|round({r.choice(['0', '1', '2', '-1'])})",
        lambda: f"({real(d-1)})|round({r.choice(['0', '1', '2'])}, {r.choice(['method=', ''])}'{r.choice(['common', 'ceil', 'floor', 'up'])}')",
        lambda: f"-{real(d-1)}", lambda: f"({real(d-1)})|abs", lambda: f"({r.choice(['2', '4', '0.25', '10'])} ** {r.choice(['-1', '0.5', '-2', '2'])})",
    )


def number(d):
    return pick(lambda: integer(d), lambda: real(d))


SPECS = ["", ">8", "<8", "^9", "*^11", "08", "+d", ",", "_", "x", "#x", "#o", "b", "08.3f", ".2f", "e", "+.1e", "g", ".3g", "%", ".1%", "n",
         "c", "s", ".3", "5.1", "=+9", "0=6", " d", "#.4g", ",.2f", "_b", "010,", "é>6", "G", "X", "-5", "z.1f", "<5s", ".2s", "012,.1f", "q", "+", "5,d"]
CODES = ["%s", "%d", "%5s", "%-6s|", "%05d", "%+d", "%.2f", "%8.3f", "%e", "%g", "%x", "%#X", "%o", "%r", "%a", "%c", "%%", "%i", "% d", "%.3s", "%-08d|", "%G",
         "%u", "%.5d", "%+.1e", "%#o", "%ld", "%q", "%5.1f%%"]


def formatted(d):
    n = r.randint(1, 3)
    style = r.random()
    if style < 0.5:
        fields, args = [], []
        for i in range(n):
            conversion = r.choice(["", "", "", "!r", "!s", "!a"])
            spec = r.choice(SPECS)
            name = r.choice(["", "", str(i), f"k{i}"]) if r.random() < 0.3 else ""
            args.append((f"k{i}=" if name.startswith("k") else "") + value(d - 1))
            fields.append("{" + name + conversion + (":" + spec if spec else "") + "}")
        args.sort(key=lambda a: a.startswith("k") and a[2:3] == "=")
        return f"'{' '.join(fields)}'.format({', '.join(args)})"
    codes = [r.choice(CODES) for _ in range(n)]
    args = [value(d - 1) for c in codes if c != "%%"]
    pattern = "'" + "/".join(codes) + "'"
    if style < 0.7:
        return f"({pattern}|format({', '.join(args)}))"
    if style < 0.8:
        return f"('%(a){r.choice(['s', 'd', '5s', 'r'])} %(b)s' % {{'a': {value(d-1)}, 'b': {value(d-1)}}})"
    return f"({pattern} % ({', '.join(args)},))"


def string(d):
    if d <= 0 or r.random() < 0.3:
        return text(r.choice(WORDS))
    if r.random() < 0.2:
        return r.choice([marked, joined])(d)
    return pick(
        lambda: f"({string(d-1)} ~ {value(d-1)})", lambda: f"({string(d-1)} + {string(d-1)})", lambda: f"({string(d-1)} * {r.choice('0123')})",
        lambda: f"{string(d-1)}|{r.choice(['upper', 'lower', 'title', 'capitalize', 'trim', 'string', 'reverse', 'safe', 'e', 'escape', 'forceescape', 'urlencode'])}",
        lambda: f"({string(d-1)}).{r.choice(['upper', 'lower', 'title', 'capitalize', 'strip', 'lstrip', 'rstrip', 'swapcase', 'casefold'])}()",
        lambda: f"({string(d-1)}).{r.choice(['strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix'])}({string(0)})",
        lambda: f"({string(d-1)}).replace({string(0)}, {string(0)}{r.choice(['', ', 1', ', 0', ', -1', ', count=1'])})",
        lambda: f"{string(d-1)}|replace({string(0)}, {string(0)}{r.choice(['', ', 1', ', count=2'])})",
        lambda: f"{string(d-1)}|{r.choice(['indent', 'indent(2)', 'indent(width=1, first=true)', 'indent(3, blank=true)', 'indent(`>`, true, true)'])}".replace("`", "'"),
        lambda: f"{string(d-1)}|{r.choice(['truncate(5)', 'truncate(4, true)', 'truncate(3, end=``)', 'truncate(5, leeway=0)', 'truncate(6, False, `..`, 1)'])}".replace("`", "'"),
        lambda: f"{string(d-1)}|center({integer(0)})",
        lambda: f"({string(d-1)}).{r.choice(['ljust', 'rjust', 'center'])}({r.choice(['8', '9', '3'])}{r.choice(['', ', `*`', ', `é`'])})".replace("`", "'"),
        lambda: f"({string(d-1)}).{r.choice(['zfill(6)', 'expandtabs(4)', 'expandtabs()'])}",
        lambda: f"({string(d-1)})[{r.choice(['', integer(0)])}:{r.choice(['', integer(0)])}{r.choice(['', ':', ':2', ':-1', ':' + integer(0)])}]",
        lambda: f"({string(d-1)})[{integer(0)}]",
        lambda: f"{array(d-1)}|join{r.choice(['', '(`, `)', '(d=`-`)'])}".replace("`", "'"),
        lambda: f"({string(0)}).join({strings(d-1)})",
        lambda: f"{strings(d-1)}|{r.choice(['first', 'last', 'min', 'max', 'join(attribute=0)'])}",
        lambda: formatted(d), lambda: formatted(d),
        lambda: f"{value(d-1)}|tojson({r.choice(['', 'indent=2', 'ensure_ascii=true', 'sort_keys=true', 'separators=(`,`, `:`)', 'indent=0', 'true, 1', 'indent=`..`, ensure_ascii=True'])})".replace("`", "'"),
        lambda: f"({string(d-1)} if {boolean(d-1)} else {string(d-1)})", lambda: f"({string(d-1)} if {boolean(d-1)})",
        lambda: f"{r.choice(['nope', 'none', string(0), 'messages[0].missing'])}|{r.choice(['default', 'd'])}({string(0)}{r.choice(['', ', true', ', boolean=true'])})",
        lambda: f"{number(d-1)}|string", lambda: f"{number(0)}|filesizeformat{r.choice(['', '(true)'])}",
        lambda: f"messages[{r.choice(['0', '1', '-1', '2'])}].{r.choice(['content', 'role'])}",
        lambda: f"strftime_now('{r.choice(['%d %b %Y', '%-d/%m/%y', '%H:%M:%S', '%A %j %U', '%I %p', '%c', '%e|%k|%l', '%G-W%V-%u'])}')",
        lambda: SCOPE.name("string") or "bos_token",
        lambda: f"(namespace(a={value(0)}) if false else {string(0)})",
    )


def joined(d):
    """A string that an operator or a method computes from an iterator or markup."""
    either = lambda: r.choice([marked, string])(d - 1)
    return pick(
        lambda: f"({either()}).join({series(d-1)})", lambda: f"({either()}).join({series(d-1)})", lambda: f"{series(d-1)}|join({either()})",
        lambda: f"({either()} ~ {either()} ~ {value(d-1)})", lambda: f"({either()} + {either()})",
        lambda: f"({either()} % {r.choice([either(), value(d-1), f'({either()},)', '()', '{}'])})",
        lambda: f"('{r.choice(CODES)}<%s>'{r.choice(['', '|safe'])} % ({either()}, {value(d-1)}))",
        lambda: f"('{r.choice(CODES)}{r.choice(CODES)}'|safe{r.choice([' %', '|format'])} ({value(d-1)}, {either()}))",
        lambda: f"('%(a){r.choice(['s', 'd', '5s', 'r'])}<'|safe % {{'a': {value(d-1)}}})",
        lambda: f"('<{{{r.choice(['', '', '!r', '!s'])}{r.choice(['', '', ':>5', ':.2f'])}}}>'|safe).format({r.choice([either(), value(d-1)])})",
        lambda: f"('{{a}} {{b}}'{r.choice(['', '|safe'])}).format_map({{'a': {either()}, 'b': {value(d-1)}}})",
    )


def marked(d):
    """Markup. Without autoescape only the filters safe and escape return it."""
    if d <= 0 or r.random() < 0.4:
        return f"({string(min(d, 1) - 1)}|{r.choice(['safe', 'e', 'escape', 'forceescape'])})"
    m, s = f"({marked(d-1)})", string(0)
    return m + pick(
        lambda: f".{r.choice(['upper', 'lower', 'title', 'capitalize', 'strip', 'swapcase', 'splitlines', 'split', 'isalpha', 'expandtabs'])}()",
        lambda: f".{r.choice(['strip', 'split', 'rsplit', 'partition', 'find', 'count', 'index', 'startswith', 'removeprefix', 'removesuffix'])}({s})",
        lambda: f".replace({s}, {r.choice([string(0), marked(0), scalar()])}{r.choice(['', ', 1'])})",
        lambda: f".{r.choice(['ljust', 'rjust', 'center'])}({r.choice(['9', '30'])}{r.choice(['', ', `*`', ', `<`', ', 5'])})".replace("`", "'"),
        lambda: f"[{r.choice(['0', '-1', ':2', '::-1', '1:'])}]", lambda: r.choice([" * 2", "|string", "|list", "|upper", "|title", "|capitalize", "|trim"]),
        lambda: r.choice(["|first", "|last", "|reverse", "|center(20)", "|indent(2)", "|indent(1, true, true)", "|tojson", "|urlencode", "|e", "|wordcount"]),
        lambda: f"|truncate({r.choice(['5', '9, true', '4, true, `<`', '6, false, `<`, 0'])})".replace("`", "'"), lambda: f"|replace({s}, {string(0)})",
    )


def series(d):
    """A value to iterate over. It is often an iterator, which can be read only once."""
    one = r.choice([lambda d: strings(d), lambda d: strings(d), array])
    return pick(
        lambda: one(d), lambda: f"({one(d)}|map('{r.choice(['upper', 'string', 'trim', 'e', 'safe', 'length', 'list'])}'))", lambda: f"({one(d)}|unique)",
        lambda: f"({one(d)}|{r.choice(['select', 'reject'])}({r.choice(['', '`string`', '`in`, `abc`', '`none`', '`escaped`'])}))".replace("`", "'"),
        lambda: f"({one(d)}|reverse)", lambda: f"({mapping(d)}|items|map('{r.choice(['first', 'last', 'join'])}'))", lambda: f"({one(d)}|batch(2)|map('join'))",
        lambda: f"({one(d)}|slice(2)|map('{r.choice(['join', 'list', 'first'])}'))", lambda: f"({mapping(d)}).{r.choice(['keys', 'values', 'items'])}()",
        lambda: f"(messages|{r.choice(['selectattr', 'rejectattr'])}('role', 'eq', 'user')|map(attribute='content'))", lambda: mapping(d),
        lambda: f"(messages|map(attribute='{r.choice(['role', 'content', 'nope'])}'))", lambda: string(d), lambda: marked(d),
        lambda: f"(messages|groupby('role')|map({r.choice(['attribute=`grouper`', '`first`', '`length`'])}))".replace("`", "'"),
    )


def strings(d):
    if d > 0 and r.random() < 0.6:
        return pick(
            lambda: f"({string(d-1)}).{r.choice(['split', 'rsplit'])}({r.choice(['', '`,`', '` `', 'none, 1', '`-`, 1', 'sep=`,`', 'maxsplit=1', '``'])})".replace("`", "'"),
            lambda: f"({string(d-1)}).splitlines({r.choice(['', 'true', 'keepends=True'])})",
            lambda: f"({string(d-1)}).{r.choice(['partition', 'rpartition'])}({string(0)})", lambda: f"{string(d-1)}|list",
            lambda: f"({strings(d-1)}|map('{r.choice(['upper', 'trim', 'length', 'title', 'string', 'e'])}')|list)",
            lambda: f"({strings(d-1)}|sort{r.choice(['', '(true)', '(case_sensitive=true)', '(reverse=True)'])})",
            lambda: f"({strings(d-1)}|unique{r.choice(['', '(true)', '(case_sensitive=True)'])}|list)",
            lambda: f"(messages|map(attribute='{r.choice(['role', 'content', 'nope'])}'{r.choice(['', ', default=`-`'])})|list)".replace("`", "'"),
        )
    return "[" + ", ".join(string(d - 1) for _ in range(r.randint(0, 3))) + "]"


def array(d):
    if d <= 0 or r.random() < 0.3:
        return "[" + ", ".join(scalar() for _ in range(r.randint(0, 4))) + "]"
    return pick(
        lambda: strings(d), lambda: f"range({integer(0)})|list", lambda: f"range({integer(0)}, {integer(0)}, {r.choice(['1', '2', '-1', '3'])})",
        lambda: f"({array(d-1)} + {array(d-1)})", lambda: f"({array(d-1)} * {r.choice('012')})",
        lambda: f"({array(d-1)})[{r.choice(['', integer(0)])}:{r.choice(['', integer(0)])}{r.choice(['', ':-1', ':2'])}]",
        lambda: f"({value(d-1)}, {value(d-1)})", lambda: f"({value(d-1)},)",
        lambda: f"({array(d-1)}|{r.choice(['select', 'reject'])}('{r.choice(['odd', 'string', 'number', 'defined', 'none', 'mapping', 'iterable', 'boolean', 'true'])}')|list)",
        lambda: f"({array(d-1)}|select('{r.choice(['eq', 'ne', 'in', 'gt', 'divisibleby', 'sameas'])}', {value(0)})|list)",
        lambda: f"(messages|{r.choice(['selectattr', 'rejectattr'])}('role'{r.choice(['', ', `equalto`, `user`', ', `in`, [`user`, `system`]', ', `ne`, `user`', ', `defined`'])})|map(attribute='content')|list)".replace("`", "'"),
        lambda: f"({array(d-1)}|reverse|list)", lambda: f"({array(d-1)}|batch({r.choice(['2', '3', '1'])}{r.choice(['', ', `-`', ', fill_with=0'])})|list)".replace("`", "'"),
        lambda: f"({array(d-1)}|slice({r.choice(['2', '3'])}{r.choice(['', ', `-`'])})|list)".replace("`", "'"),
        lambda: f"({array(d-1)}|sort{r.choice(['', '(reverse=true)'])})", lambda: f"({array(d-1)}|unique|list)",
        lambda: f"({mapping(d-1)}|dictsort({r.choice(['', 'true', 'by=`value`', 'reverse=true', 'false, `value`, true', 'by=`x`'])}))".replace("`", "'"),
        lambda: f"({mapping(d-1)}).{r.choice(['items', 'keys', 'values'])}()|list", lambda: f"({mapping(d-1)}|items|list)", lambda: f"({mapping(d-1)}|list)",
        lambda: f"(messages|groupby('role'{r.choice(['', ', case_sensitive=true'])})|map('first')|list)",
        lambda: f"(messages|sort(attribute='{r.choice(['role', 'content', 'role,content', 'nope'])}', reverse={r.choice(['true', 'false'])})|map(attribute='role')|list)",
        lambda: SCOPE.name("array") or "[]",
    )


def mapping(d):
    if d > 0 and r.random() < 0.3:
        return pick(lambda: f"dict({mapping(d-1)}, {r.choice(NAMES)}={value(d-1)})", lambda: f"dict({r.choice('ab')}={value(d-1)}, c={value(d-1)})",
                    lambda: f"dict([('{r.choice(NAMES)}', {value(d-1)})])", lambda: SCOPE.name("mapping") or "{}")
    keys = [r.choice([text(n) for n in NAMES] + ["1", "true", "none", "2.5", "'B'", "'é'", "(1, 2)"]) for _ in range(r.randint(0, 4))]
    return "{" + ", ".join(f"{k}: {value(d-1) if d > 0 else scalar()}" for k in keys) + "}"


TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable",
         "callable", "odd", "even", "lower", "upper", "divisibleby(3)", "divisibleby 2", "eq 1", "sameas none", "in [1, 'a', none]", "gt 1", "lt(2)", "ge 0",
         "equalto 'a'", "ne none", "escaped", "filter", "test"]


def boolean(d):
    if d <= 0 or r.random() < 0.2:
        return r.choice(["true", "false", "True", "False", "not true", "1 == 1.0", "'a' in 'abc'", "none is none"])
    return pick(
        lambda: f"({value(d-1)} {r.choice(['==', '!='])} {value(d-1)})", lambda: f"({number(d-1)} {r.choice(['<', '<=', '>', '>='])} {number(d-1)})",
        lambda: f"({string(d-1)} {r.choice(['<', '<=', '>', '>=', 'in', 'not in', '=='])} {string(d-1)})",
        lambda: f"({integer(0)} {r.choice(['<', '<=', '=='])} {integer(0)} {r.choice(['<', '!=', '>'])} {integer(0)})",
        lambda: f"({value(d-1)} {r.choice(['in', 'not in'])} {array(d-1)})", lambda: f"({string(0)} in {mapping(d-1)})",
        lambda: f"({string(0)} in {series(d-1)})", lambda: f"({r.choice([marked, joined])(d-1)} is escaped)",
        lambda: f"({value(d-1)} is {r.choice(['', 'not '])}{r.choice(TESTS)})", lambda: f"({array(d-1)} {r.choice(['<', '==', '>='])} {array(d-1)})",
        lambda: f"({boolean(d-1)} {r.choice(['and', 'or'])} {boolean(d-1)})", lambda: f"not {boolean(d-1)}", lambda: f"({value(d-1)} {r.choice(['and', 'or'])} {value(d-1)})",
        lambda: f"({string(d-1)}).{r.choice(['isdigit', 'isalpha', 'isspace', 'isupper', 'islower', 'isalnum', 'isnumeric', 'isdecimal', 'istitle', 'isascii', 'isidentifier', 'isprintable'])}()",
        lambda: f"({string(d-1)}).{r.choice(['startswith', 'endswith'])}({r.choice([string(0), '(`a`, ` `)', '`H`, 0, 2', '`e`, 1'])})".replace("`", "'"),
        lambda: f"({r.choice(['nope', 'messages[9]', 'none', 'messages[0].nope', '``'])} is {r.choice(['defined', 'not none', 'string'])})".replace("`", "'"),
    )


def scalar():
    return pick(lambda: integer(0), lambda: real(0), lambda: string(0), lambda: r.choice(["true", "false", "none"]))


def value(d):
    if d <= 0 and r.random() < 0.7:
        return scalar()
    if d <= 0:
        return pick(lambda: array(0), lambda: mapping(0))
    if r.random() < 0.04:
        return r.choice(["none", "nope", "messages[0].nope", "bos_token", "range(3)", "{}.items()"])
    return pick(lambda: integer(d), lambda: real(d), lambda: string(d), lambda: string(d), lambda: array(d), lambda: mapping(d), lambda: boolean(d),
                lambda: f"({mapping(d-1)}).get({string(0)}{r.choice(['', ', ' + value(0)])})", lambda: f"({array(d-1)})[{integer(0)}]",
                lambda: marked(d), lambda: f"{series(d-1)}|{r.choice(['list', 'first', 'join', 'length', 'last', 'sort', 'tojson', 'sum', 'max'])}",
                lambda: f"({mapping(d-1)})[{r.choice([string(0), '`a`'])}]".replace("`", "'"), lambda: f"({mapping(d-1)}).{r.choice(NAMES)}",
                lambda: f"({array(d-1)}|{r.choice(['first', 'last', 'sum', 'min', 'max'])})")


TYPES = {"integer": integer, "string": string, "array": array, "mapping": mapping}
COUNTER = [0]


def fresh(prefix):
    COUNTER[0] += 1
    return f"{prefix}{COUNTER[0]}"


def tag(body):
    return f"{{%{r.choice(['', '-', '', '', '+'])} {body} {r.choice(['', '-', '', ''])}%}}"


def gap():
    return r.choice(["", "\n", " ", "\n  ", "text ", "  \n\n", "é\n", "{# note #}", "{#- note -#}\n", "\t"])


def output(d):
    return f"{{{{{r.choice(['', '-', ''])} {value(d)} {r.choice(['', '-', ''])}}}}}"


def statement(d):
    if d <= 0:
        return output(3)
    return pick(*([lambda: output(3)] * 4), setting, lambda: looping(d), lambda: branching(d), lambda: macro(d), lambda: blocks(d), spaces, lambda: loops(d))


def body(d):
    return gap() + "".join(statement(d - 1) + gap() for _ in range(r.randint(1, 2)))


def setting():
    t = r.choice(list(TYPES))
    e, name = TYPES[t](2), fresh("v")
    SCOPE.vars[t].append(name)
    return r.choice([tag(f"set {name} = {e}"), tag(f"set {name}, {fresh('w')} = {e}, {value(1)}"), tag(f"set ({name}, {fresh('w')}) = ({e}, {value(1)})")])


def looping(d):
    name, kind = fresh("i"), r.random()
    about = r.choice(["loop.index", "loop.index0 ~ loop.revindex ~ loop.revindex0", "loop.first ~ loop.last", "loop.length", "loop.cycle('x', 'y')", "loop.depth",
                      "loop.previtem is defined", "(loop.nextitem|default('end'))|string", f"loop.changed({name})", "loop.depth0"])
    head = f"for {name} in {array(2)}"
    if kind < 0.2:
        key = fresh("k")
        head = f"for {key}, {name} in {r.choice([f'({mapping(2)}).items()', f'{mapping(2)}|items', f'{mapping(2)}|dictsort'])}"
    elif kind < 0.3:
        head = f"for {name} in messages"
    if r.random() < 0.2:
        head += f" if {r.choice([name, f'{name} is not none', f'{name} is number', boolean(1)])}"
    control = r.choice(["", "", "", tag(f"if loop.index == {r.choice('123')}") + tag(r.choice(["break", "continue"])) + tag("endif")])
    otherwise = tag("else") + gap() + output(1) if r.random() < 0.3 else ""
    return tag(head) + "{{ " + about + " }}" + "{{ " + name + "|string }}" + control + body(d - 1) + otherwise + tag("endfor")


def branching(d):
    middle = tag(f"elif {boolean(2)}") + body(d - 1) if r.random() < 0.4 else ""
    end = tag("else") + body(d - 1) if r.random() < 0.5 else ""
    return tag(f"if {r.choice([boolean(2), value(2)])}") + body(d - 1) + middle + end + tag("endif")


def macro(d):
    name, p = fresh("m"), fresh("p")
    params = r.choice([p, f"{p}, q={value(1)}", f"{p}=1, q={p}", f"{p}, caller_text='c'"])
    extra = r.choice(["", "{{ varargs|string }}", "{{ kwargs|string }}", "{{ varargs|length }}{{ kwargs|tojson }}"])
    call = r.choice([f"{name}({value(1)})", f"{name}({p}={value(1)})", f"{name}({value(1)}, {value(1)}, {value(1)})", f"{name}(*{array(1)})",
                     f"{name}({value(1)}, **{{'z': {value(0)}}})", f"{name}()", f"{name}({value(1)}, q={value(1)})", f"{name}(*[1, 2], **{{'k': 3}})"])
    head = tag(f"macro {name}({params})") + "{{ " + p + "|string }}" + extra
    if r.random() < 0.3:
        return head + "[{{ caller(1) }}]" + tag("endmacro") + tag(f"call(x) {call}") + "{{ x }}" + body(d - 1) + tag("endcall")
    return head + body(d - 1) + tag("endmacro") + "{{ " + call + " }}"


def blocks(d):
    name = fresh("v")
    return pick(
        lambda: tag(f"set {name}{r.choice(['', ' | upper', ' | trim | length', ' | replace(`a`, `b`)'])}".replace("`", "'")) + body(d - 1) + tag("endset") + "{{ " + name + " }}",
        lambda: tag(f"filter {r.choice(['upper', 'trim', 'indent(2)', 'replace(`e`, `E`)|title', 'e', 'tojson', 'length'])}".replace("`", "'")) + body(d - 1) + tag("endfilter"),
        lambda: tag(f"with {name} = {value(1)}, y = {value(1)}") + "{{ " + name + "|string }}" + body(d - 1) + tag("endwith") + "{{ y is defined }}",
        lambda: tag(f"set {name} = namespace(n=0, s='')") + tag(f"for x in {array(1)}") + tag(f"set {name}.n = {name}.n + 1") + tag(f"set {name}.s = {name}.s ~ x") + tag("endfor")
        + "{{ " + name + ".n ~ " + name + ".s }}",
        lambda: tag("raw") + "{{ raw }} {% x %}" + tag("endraw"),
        lambda: tag(f"print {value(1)}, {value(1)}"),
    )


def loops(d):
    return r.choice([
        "{% for x in [1, [2, [3, 4]], 5] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ loop.depth }}:{{ x }} {% endif %}{% endfor %}",
        "{% for x in range(3) %}{% for y in range(x) %}{{ x * y }}{% if y == 1 %}{% break %}{% endif %},{% else %}none{% endfor %};{% endfor %}",
        "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set j = joiner('|') %}{{ j() }}x{{ j() }}y",
        "{% set g = [1, 2, 3]|select('odd') %}{{ g|first }}{{ g|list }}{{ g|list }}{{ 'yes' if g else 'no' }}",
        "{% set g = messages|map(attribute='role') %}{{ ','.join(g) }}|{{ ','.join(g) }}|{{ g|first is defined }}",
        "{% for m in messages %}{{ m.role|upper }}{{ m['content']|trim }}{{ '\\n' if not loop.last }}{% endfor %}",
        "{% for (a, (b, c)) in [(1, (2, 3)), 'xy'|batch(1)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
        "{% for k, v in {'b': 1, 'a': 2}.items() %}{{ loop.index }}{{ k }}={{ v }};{% endfor %}",
    ])


def spaces():
    return r.choice(["  {% if true %}  \n  x\n  {% endif %}  \n", "{%- if true -%} \n y {%- endif -%} \n", "{{ 1 }}\n\n{%+ if true %} z{% endif %}\n", "   {# c #}\n"])


cases = []
while len(cases) < COUNT:
    SCOPE = Scope()
    source = gap() + "".join(statement(2) + gap() for _ in range(r.randint(1, 4)))
    case = {"source": source}
    try:
        case["text"] = render(source, MESSAGES, True, pad_token="<pad>", additional_special_tokens=["<x>"])
    except Exception as e:
        case["error"] = f"{type(e).__name__}: {e}"[:80]
        if sum("error" in c for c in cases) * 5 > len(cases):
            continue  # enough of them
    said = json.dumps(case)
    if " 0x7" in said or len(said) > 3000 or "too many values" in said and r.random() < 0.5:
        continue  # addresses differ from run to run
    cases.append(case)

FILE.write_text(json.dumps({"jinja2": jinja2.__version__, "seed": SEED, "cases": cases}, indent=0, ensure_ascii=False) + "\n")
print(len(cases), "cases,", sum("error" in c for c in cases), "errors,", FILE.stat().st_size, "bytes")
