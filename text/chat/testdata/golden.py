"""Renders the cases of golden.json with Jinja in the environment of transformers, and writes what it gives.

    python3 golden.py        (needs jinja2 3.1; to add a case, add its source and run this)
"""

import json
import pathlib

from environment import MESSAGES, render

HERE = pathlib.Path(__file__).parent


def answer(case, source, messages, generate):
    case.pop("text", None), case.pop("error", None)
    try:
        case["text"] = render(source, messages, generate)
    except Exception as e:
        case["error"] = str(e)


golden = json.loads((HERE / "golden.json").read_text())
for case in golden["templates"]:
    answer(case, (HERE / case["template"]).read_text(), case["messages"], case["generate"])
for case in golden["expressions"]:
    answer(case, case["source"], MESSAGES, True)
(HERE / "golden.json").write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")
