package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// caseTemplate returns the template of a case in the shared test data.
func caseTemplate(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "cases", name, "chat_template.jinja"))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the shared cases are missing: %v", err)
		}
		t.Skipf("the shared cases are missing: %v", err)
	}
	return string(data)
}

// gives checks what the template of a case renders for one user message.
func gives(t *testing.T, name, content, want string) {
	t.Helper()
	c := context([]Message{{"user", content}}, true)
	c.Special["pad_token"] = "<pad>"
	if got, err := render(caseTemplate(t, name), c); err != nil || got != want {
		t.Errorf("%s: %q, %v, want %q", name, got, err, want)
	}
}

func TestSpecialTokensAreVariables(t *testing.T) {
	gives(t, "chat-pad", "hi", "[<pad>]hi")
	c := context(nil, true)
	c.Special = map[string]string{"eos_token": "</s>", "image_token": "<i>"}
	c.Extra = []string{"<think>"}
	got, err := render("{{ eos_token ~ image_token ~ additional_special_tokens[0] }}{{ bos_token is defined }}", c)
	if want := "</s><i><think>False"; got != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestStrftimeKnowsEveryCode(t *testing.T) {
	want := `a=[Tue] A=[Tuesday] w=[2] d=[04] b=[Mar] B=[March] m=[03] y=[25] Y=[2025] H=[05] I=[05] M=[06] p=[AM] S=[07] ` +
		`f=[000000] z=[] Z=[] j=[063] U=[09] W=[09] c=[Tue Mar  4 05:06:07 2025] x=[03/04/25] X=[05:06:07] %=[%] G=[2025] ` +
		`V=[10] u=[2] F=[2025-03-04] T=[05:06:07] D=[03/04/25] R=[05:06] e=[ 4] C=[20] l=[ 5] P=[am] h=[Mar] n=[` + "\n" +
		`] k=[ 5] r=[05:06:07 AM] s=[1741064767] t=[` + "\t" + `] [4 3 March] [04 Mar 2025] hi`
	gives(t, "chat-strftime", "hi", want)
	at := time.Date(2024, 12, 30, 23, 59, 1, 1000, time.UTC)
	for format, want := range map[string]string{
		"%j %U %W %V %G %g %u %w": "365 52 53 01 2025 25 1 1", "%I %l %p": "11 11 PM", "%f": "000001",
		"%^a %#p %_d %5d|%-m": "MON pm 30 00030|12", "%Ey %Od": "24 30",
	} {
		if got := (&state{most: 100}).strftime(at, format); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}

func TestFormatFollowsTheMiniLanguage(t *testing.T) {
	gives(t, "chat-format", "it's", `   7|2.2|"it's"`)
}

func TestTojsonEscapesNonASCII(t *testing.T) {
	gives(t, "chat-ensure_ascii", "é🙂\x7f", `"\u00e9\ud83d\ude42\u007f"`)
}

func TestDictsortReverses(t *testing.T) { gives(t, "chat-dictsort", "", "b1a2") }

func TestBranchesNotTakenMayNameUnknownFilters(t *testing.T) {
	gives(t, "chat-branch-filter", "hi", "hi")
	if _, err := render("{% if true %}{{ 1 | nope }}{% endif %}", context(nil, true)); err == nil {
		t.Error("an unknown filter in a branch that runs gives no error")
	}
	if _, err := render("{{ 1 if true else 2 is nope }}", context(nil, true)); err != nil {
		t.Error(err)
	}
}

// An unknown argument is an error. It is never ignored.
func TestUnknownArgumentsAreErrors(t *testing.T) {
	var sources []string
	add := func(format string, table map[string]builtin) {
		for name, b := range table {
			if !b.keywords {
				sources = append(sources, strings.NewReplacer("NAME", name, "ARG", "nope=1").Replace(format))
			}
			if !b.variadic {
				many := strings.Repeat("1, ", b.places)
				sources = append(sources, strings.NewReplacer("NAME", name, "ARG", many).Replace(format))
			}
		}
	}
	add(`{{ "1" | NAME(ARG) }}`, filters)
	add(`{{ "1" is NAME(ARG) }}`, tests)
	add(`{{ "1".NAME(ARG) }}`, stringMethods)
	add(`{{ {}.NAME(ARG) }}`, dictMethods)
	add(`{{ [].NAME(ARG) }}`, listMethods)
	add(`{{ (1.5).NAME(ARG) }}`, floatMethods)
	sources = append(sources,
		`{{ "x" | map("upper", nope=1) | list }}`, `{{ ["x"] | map(attribute="a", nope=1) | list }}`,
		`{{ range(1, nope=2) }}`, `{{ range() }}`, `{{ range(1, 2, 3, 4) }}`, `{{ raise_exception() }}`, `{{ dict(1, 2) }}`,
		`{{ strftime_now("%Q") }}`, `{{ strftime_now("%") }}`, `{{ strftime_now("%d", nope=1) }}`,
		`{{ "%q" % 1 }}`, `{{ "%" % 1 }}`, `{{ "a" % 1 }}`, `{{ "%s %s" % 1 }}`, `{{ "%d" % "a" }}`,
		`{{ "{:q}".format(1) }}`, `{{ "{!x}".format(1) }}`, `{{ "{".format(1) }}`, `{{ "{} {}".format(1) }}`, `{{ "{a}".format(1) }}`,
		`{{ [1] | sort(nope=1) }}`, `{{ {} | dictsort(by="x") }}`, `{{ 1 | round(0, "up") }}`, `{{ "a" | format(1, a=2) }}`,
		`{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}`, `{% macro m(a) %}{% endmacro %}{{ m(b=1) }}`,
		`{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}`,
		`{% for a in [1] %}{{ loop.cycle() }}{% endfor %}`, `{% for a in [1] %}{{ loop([]) }}{% endfor %}`,
		`{{ [].append(1) }}`, `{{ {}.update({}) }}`, `{{ 9223372036854775807 + 1 }}`, `{{ 2 ** 64 }}`, `{{ {[]: 1} }}`,
		`{% break %}`, `{{ f(*1) }}`, `{{ dict(**1) }}`, `{{ dict(a=1, a=2) }}`, `{{ nope[1:] }}`, `{{ nope | int }}`,
	)
	for _, source := range sources {
		if got, err := render(source, context(nil, true)); err == nil {
			t.Errorf("%s gives %q and no error", source, got)
		}
	}
	if len(sources) < 250 {
		t.Errorf("only %d calls were tested", len(sources))
	}
}
