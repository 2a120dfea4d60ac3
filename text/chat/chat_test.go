package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf"
)

// golden holds golden.json: what Jinja 3.1.6, set up as in transformers, renders for the templates in
// testdata and for small ones. golden.py writes the file.
type golden struct {
	Templates []struct {
		Template    string
		Messages    []Message
		Generate    bool
		Text, Error string
	}
	Expressions []struct{ Source, Text, Error string }
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func context(messages []Message, generate bool) Context {
	return Context{
		Messages: messages, Generate: generate, Special: map[string]string{"bos_token": "<s>", "eos_token": "</s>"},
		Now: time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC),
	}
}

func render(source string, c Context) (string, error) {
	t, err := Parse("model.gguf", source)
	if err != nil {
		return "", err
	}
	return t.Render(c)
}

func TestTemplatesGiveWhatTheReferenceGives(t *testing.T) {
	for _, c := range readGolden(t).Templates {
		source, err := os.ReadFile(filepath.Join("testdata", c.Template))
		if err != nil {
			t.Fatal(err)
		}
		got, err := render(string(source), context(c.Messages, c.Generate))
		switch {
		case c.Error != "":
			if err == nil || !strings.Contains(err.Error(), c.Error) {
				t.Errorf("%s: %v, want %s", c.Template, err, c.Error)
			}
		case err != nil || got != c.Text:
			t.Errorf("%s of %v:\n got %q, %v\nwant %q", c.Template, c.Messages, got, err, c.Text)
		}
	}
}

func TestExpressionsGiveWhatTheReferenceGives(t *testing.T) {
	messages := []Message{
		{"system", " Be terse. "}, {"user", "2+2?"}, {"assistant", " 4\n"}, {"user", "Why \"so\" <b> é 你好?\n\n- x"},
	}
	for _, c := range readGolden(t).Expressions {
		got, err := render(c.Source, context(messages, true))
		if (err != nil) != (c.Error != "") || got != c.Text {
			t.Errorf("%s\n got %q, %v\nwant %q, %s", c.Source, got, err, c.Text, c.Error)
		}
	}
}

func TestPublishedTemplateRendersByteExact(t *testing.T) {
	if _, err := os.Stat("../../../shared/models/smollm2-chat.json"); err != nil && os.Getenv("CI") == "" {
		t.Skip("no ../shared/models: ", err)
	}
	data, err := os.ReadFile("../../../shared/models/smollm2-chat.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Cases []struct {
			Messages []Message
			Generate bool `json:"add_generation_prompt"`
			Text     string
		}
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Open("../../../shared/models/smollm2-135m-instruct-q4_1.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	source, err := file.String("tokenizer.chat_template")
	if err != nil || len(g.Cases) == 0 {
		t.Fatal(err, len(g.Cases))
	}
	for _, c := range g.Cases {
		if got, err := render(source, context(c.Messages, c.Generate)); err != nil || got != c.Text {
			t.Errorf("%v:\n got %q, %v\nwant %q", c.Messages, got, err, c.Text)
		}
	}
}

// doubling makes a.x and b.x, which are equal and have 2⁵⁰ parts that share few values.
const doubling = `{% set a = namespace(x=[1]) %}{% set b = namespace(x=[1]) %}{% for i in range(50) %}` +
	`{% set a.x = [a.x, a.x] %}{% set b.x = [b.x, b.x] %}{% endfor %}`

// long evaluates an expression on a long string x many times.
func long(expression string) string {
	return `{% set x = "1" * 1000000 %}{% for i in range(99999) %}{% if ` + expression + ` %}{% endif %}{% endfor %}`
}

// endless calls a macro recursively. The call is followed by as many operators as a template can hold.
func endless(operator string) string {
	return "{% macro f() %}{{ f()" + strings.Repeat(operator, 1<<20/len(operator)-30) + " }}{% endmacro %}{{ f() }}"
}

// Every template ends, with a one-line error that names the line.
func TestTemplatesThatDoNotEndAreStopped(t *testing.T) {
	for name, source := range map[string]string{
		"a loop in a loop": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
		"a long text":      `{% for a in range(99999) %}{{ "x" * 10000 }}{% endfor %}`,
		"a string that doubles": `{% set n = namespace(x="x") %}{% for a in range(99) %}{% set n.x = n.x ~ n.x %}` +
			`{% endfor %}`,
		"a list that doubles": `{% set n = namespace(x=[1]) %}{% for a in range(99) %}{% set n.x = n.x + n.x %}` +
			`{% endfor %}`,
		"a product":                  `{{ "x" * 1000000000 }}`,
		"a product of lists":         `{{ [1] * 1000000000 }}`,
		"a replacement":              `{{ ("x" * 100000) | replace("x", "y" * 100000) }}`,
		"an indent":                  `{{ "a\nb" | indent(1000000000) }}`,
		"a range":                    `{{ range(1000000000) }}`,
		"a longer range":             `{{ range(10 ** 12) }}`,
		"a width of format":          `{{ "{:>1000000000}".format(1) }}`,
		"a width with groups":        `{{ "{:01000000000,}".format(1) }}`,
		"a precision of format":      `{{ "{:.1000000000f}".format(0.1) }}`,
		"a width of a format":        `{{ "%1000000000d" % 1 }}`,
		"a given width of a format":  `{{ "%*d" % (1000000000, 1) }}`,
		"a precision of a format":    `{{ "%.1000000000d" % 1 }}`,
		"a width of strftime":        `{{ strftime_now("%1000000000d") }}`,
		"a text that is centered":    `{{ "a" | center(1000000000) }}`,
		"a text that is justified":   `{{ "a".ljust(10 ** 9) }}`,
		"a number filled with zeros": `{{ "1".zfill(10 ** 9) }}`,
		"tabs":                       `{{ "\t\t".expandtabs(10 ** 9) }}`,
		"a batch":                    `{{ [1] | batch(10 ** 9, 0) | list }}`,
		"slices of nothing":          `{{ [] | slice(10 ** 9) | list }}`,
		"an indent of JSON":          `{{ [[1]] | tojson(indent=10 ** 9) }}`,
		"a round number":             `{% for a in range(9999) %}{% for b in range(9999) %}{{ 1.5|round(400) }}{% endfor %}{% endfor %}`,
		"arguments that double":      `{% macro m() %}{{ m(*(varargs + varargs + (1,))) }}{% endmacro %}{{ m(1) }}`,
		"iterators in iterators": `{% set n = namespace(x=[1]) %}{% for i in range(9999) %}` +
			`{% set n.x = n.x | map("string") %}{% endfor %}{{ n.x | list }}`,
		"a macro that calls itself":  `{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}`,
		"a loop that calls itself":   `{% for a in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}`,
		"parentheses":                "{{ " + strings.Repeat("(", 1<<19),
		"signs":                      "{{ " + strings.Repeat("-", 1<<19) + "1 }}",
		"denials":                    "{{ " + strings.Repeat("not ", 1<<17) + "1 }}",
		"branches":                   strings.Repeat("{% if 1 %}", 1<<16),
		"a list in a list":           `{% set n = namespace(x=[]) %}{% for a in range(9999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}`,
		"an equality of deep values": doubling + "{{ a.x == b.x }}",
		"an order of deep values":    doubling + "{{ a.x < b.x }}",
		"a search for a deep value":  doubling + "{{ a.x in [b.x] }}",
		"a key that is deep":         doubling + "{{ {a.x: 1}[b.x] }}",
		"unique of deep values":      doubling + "{{ [a.x, b.x] | unique }}",
		"sort of deep values":        doubling + "{{ [a.x, b.x] | sort }}",
		"values that nest": `{% set a = namespace(x=[]) %}{% set b = namespace(x=[]) %}{% for i in range(9999) %}` +
			`{% set a.x = [a.x] %}{% set b.x = [b.x] %}{% endfor %}{{ a.x == b.x }}`,
		"an equality of long texts":            long(`x ~ "a" == x ~ "b"`),
		"a whole number":                       long("x | int"),
		"a fraction":                           long("x | float"),
		"a text that is lower":                 long("x is lower"),
		"a text made upper":                    long("(x | upper)"),
		"a strip of many":                      long(`x.strip("é" ~ x[1:])`),
		"joins of nothing":                     `{% set x = [""] * 100000 %}{% for i in range(99999) %}{% set y = x | join %}{% endfor %}`,
		"joins of nothing by a method":         `{% set x = [""] * 100000 %}{% for i in range(99999) %}{% set y = "".join(x) %}{% endfor %}`,
		"constants":                            "{% for i in range(99999) %}{% if 0" + strings.Repeat(" or 0", 1<<17) + " %}{% endif %}{% endfor %}",
		"separators":                           `{% set s = "x" * 1000000 %}{{ ([1] * 100000) | tojson(separators=(s, s)) }}`,
		"a format":                             long("x % 1"),
		"names that are long":                  long("x[x]"),
		"parameters":                           "{% macro f(" + strings.Repeat("a,", 1<<17) + ") %}{% endmacro %}{% for i in range(99999) %}{{ f() }}{% endfor %}",
		"sums of a macro that calls itself":    endless("+1"),
		"items of a macro that calls itself":   endless("[0:]"),
		"filters of a macro that calls itself": endless("|e"),
		"tests of a macro that calls itself":   endless(" is odd"),
		"choices of a macro that calls itself": endless(" if 1"),
		"a map of maps": `{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}` +
			`{{ n.x | map(` + strings.Repeat(`"map",`, 1<<17) + `) }}`,
		"a raw block":     "{% raw %}" + strings.Repeat("{% ", 1<<18),
		"a long template": strings.Repeat("x", 1<<20+1),
	} {
		_, err := render(source, context(nil, true))
		if err == nil || strings.Contains(err.Error(), "\n") ||
			!strings.HasPrefix(err.Error(), "model.gguf: chat template, line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLongTurnsAreNoReasonToStop(t *testing.T) {
	source, err := os.ReadFile("testdata/qwen3.jinja")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("word ", 1<<18)
	got, err := render(string(source), context([]Message{
		{"system", long}, {"user", long}, {"assistant", long}, {"user", long},
	}, true))
	if err != nil || len(got) < 4*len(long) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestAnErrorNamesTheLineAndTheReason(t *testing.T) {
	golden := wordingtest.New(t)
	for _, source := range []string{
		"a\n\n{{ nope.x }}",
		"{{ raise_exception('no\nsystem') }}",
		"\n{% if true %}",
		"{{ 'a' + 1 }}",
		"{{ 1 | nope }}",
		"{% nope %}",
		"{{ 'abc }}",
		"{{ a b }}",
		"{% for m in messages %}\n{{ m.x.y }}{% endfor %}",
		"{{ 1 // 0 }}",
		"{{ ? }}",
	} {
		_, err := render(source, context([]Message{{"user", "x"}}, true))
		golden.Error(source, err)
	}
}

func TestGenerationTagsSayNothing(t *testing.T) {
	got, err := render("{% generation %}x{{ 1 }}{% endgeneration %}", context(nil, true))
	if got != "x1" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// No template does worse than return an error.
func FuzzTemplate(f *testing.F) {
	for _, c := range []string{"{{ a[1:][::-1] | join(',') }}", "{% for a in messages %}{{ loop.index }}{% endfor %}"} {
		f.Add(c)
	}
	names, _ := filepath.Glob("testdata/*.jinja")
	for _, name := range names {
		if source, err := os.ReadFile(name); err == nil {
			f.Add(string(source))
		}
	}
	f.Fuzz(func(t *testing.T, source string) {
		_, err := render(source, context([]Message{{"user", "x"}, {"assistant", "y"}}, true))
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("not one line: %q", err)
		}
	})
}

// random.json holds what Jinja, set up as in transformers, renders for random templates. random_templates.py
// writes the file.
func TestRandomTemplatesGiveWhatTheReferenceGives(t *testing.T) {
	name := "testdata/random.json"
	if other := os.Getenv("RANDOM_TEMPLATES"); other != "" {
		name = other
	}
	data, err := os.ReadFile(name)
	var g struct {
		Cases []struct{ Source, Text, Error string }
	}
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil || len(g.Cases) < 300 {
		t.Fatal(len(g.Cases), err)
	}
	c := context([]Message{
		{"system", " Be terse. "}, {"user", "2+2?"}, {"assistant", " 4\n"}, {"user", "Why \"so\" <b> é 你好?\n\n- x"},
	}, true)
	c.Special["pad_token"] = "<pad>"
	c.Extra = []string{"<x>"}
	for i, want := range g.Cases {
		got, err := render(want.Source, c)
		if (err != nil) != (want.Error != "") || got != want.Text {
			t.Errorf("template %d: %s\n got %q, %v\nwant %q, %s", i, want.Source, got, err, want.Text,
				want.Error)
		}
	}
}
