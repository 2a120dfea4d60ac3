"""The environment of transformers for chat templates, which golden.py and random.py render with."""

import datetime
import json

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2025, 3, 4, 5, 6, 7)
MESSAGES = [
    {"role": "system", "content": " Be terse. "},
    {"role": "user", "content": "2+2?"},
    {"role": "assistant", "content": " 4\n"},
    {"role": "user", "content": 'Why "so" <b> é 你好?\n\n- x'},
]


def raise_exception(message):
    raise TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
env.filters["tojson"] = tojson
env.globals.update(raise_exception=raise_exception, strftime_now=NOW.strftime)


def render(source, messages, generate, **special):
    return env.from_string(source).render(
        messages=messages, add_generation_prompt=generate, bos_token="<s>", eos_token="</s>",
        tools=None, documents=None, **special)
