"""Renders the cases of golden.json with Jinja in the environment of transformers, and writes what it gives.

    python3 golden.py        (needs jinja2 3.1; to add a case, add its source and run this)
"""

import datetime
import json
import pathlib

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2025, 3, 4, 5, 6, 7)
MESSAGES = [
    {"role": "system", "content": " Be terse. "},
    {"role": "user", "content": "2+2?"},
    {"role": "assistant", "content": " 4\n"},
    {"role": "user", "content": 'Why "so" <b> é 你好?\n\n- x'},
]


def raise_exception(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
env.filters["tojson"] = tojson
env.globals.update(raise_exception=raise_exception, strftime_now=NOW.strftime)


def render(case, source, messages, generate):
    case.pop("text", None), case.pop("error", None)
    try:
        case["text"] = env.from_string(source).render(
            messages=messages, add_generation_prompt=generate, bos_token="<s>", eos_token="</s>",
            tools=None, documents=None)
    except Exception as e:
        case["error"] = str(e)


golden = json.loads((HERE / "golden.json").read_text())
for case in golden["templates"]:
    render(case, (HERE / case["template"]).read_text(), case["messages"], case["generate"])
for case in golden["expressions"]:
    render(case, case["source"], MESSAGES, True)
(HERE / "golden.json").write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")
