//go:build cgo

package wgpu

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// native.go declares by hand the parts of the library that it uses. This test compiles its declarations
// together with the headers that the binding ships. If a new version of the library changes one of them, the
// test fails, instead of the program using a wild pointer.

// mirrored lists the structs with their fields, in the headers' names and order.
var mirrored = map[string]struct {
	theirs []string
	fields [][2]string // ours, theirs
}{
	"chained":            {[]string{"WGPUChainedStruct"}, [][2]string{{"next", "next"}, {"type", "sType"}}},
	"instanceDescriptor": {[]string{"WGPUInstanceDescriptor"}, [][2]string{{"next", "nextInChain"}}},
	"labelled": {
		[]string{"WGPUCommandEncoderDescriptor", "WGPUCommandBufferDescriptor"},
		[][2]string{{"next", "nextInChain"}, {"label", "label"}},
	},
	"passDescriptor": {
		[]string{"WGPUComputePassDescriptor"},
		[][2]string{{"next", "nextInChain"}, {"label", "label"}, {"timestampWrites", "timestampWrites"}},
	},
	"instanceExtras": {
		[]string{"WGPUInstanceExtras"},
		[][2]string{
			{"chain", "chain"},
			{"backends", "backends"},
			{"flags", "flags"},
			{"dx12ShaderCompiler", "dx12ShaderCompiler"},
			{"gles3MinorVersion", "gles3MinorVersion"},
			{"dxilPath", "dxilPath"},
			{"dxcPath", "dxcPath"},
		},
	},
	"errorCallback": {[]string{"WGPUErrorCallback"}, nil},
	"mapCallback":   {[]string{"WGPUBufferMapCallback", "WGPUBufferMapAsyncCallback"}, nil},
}

// equal lists the constants.
var equal = [][2]string{
	{"typeInstanceExtras", "WGPUSType_InstanceExtras"},
	{"mapRead", "WGPUMapMode_Read"},
	{"scopeValidation", "WGPUErrorFilter_Validation"},
	{"scopeOutOfMemory", "WGPUErrorFilter_OutOfMemory"},
	{"0", "WGPUErrorType_NoError"},
	{"0", "WGPUBufferMapAsyncStatus_Success"},
}

var (
	preambleRE  = regexp.MustCompile(`(?s)\n/\*\n(.*?)\*/\nimport "C"`)
	prototypeRE = regexp.MustCompile(`(?ms)^([\w][\w *]*?[ *])(wgpu[A-Z]\w+)\(([^()]*)\)[^;{]*;`)
	callbackRE  = regexp.MustCompile(`typedef void \(\*(\w+)\)\(([^()]*)\)[^;]*;`)
	nameRE      = regexp.MustCompile(`\b\w+$`)
)

// function is a prototype: the type of the result, then the types of the parameters.
type function []string

// prototypes returns the functions and callback types of a C source, by name.
func prototypes(text string) map[string]function {
	list := map[string]function{}
	for _, m := range prototypeRE.FindAllStringSubmatch(text, -1) {
		result := strings.TrimSpace(strings.NewReplacer("extern", "", "WGPU_EXPORT", "").Replace(m[1]))
		list[m[2]] = append(function{result}, arguments(m[3])...)
	}
	for _, m := range callbackRE.FindAllStringSubmatch(text, -1) {
		list[m[1]] = append(function{"void"}, arguments(m[2])...)
	}
	return list
}

// arguments returns the types of a parameter list. Only some parameters have names.
func arguments(list string) (types []string) {
	for _, a := range strings.Split(list, ",") {
		a = strings.Join(strings.Fields(a), " ")
		for _, annotation := range []string{"WGPU_NULLABLE ", "struct "} {
			a = strings.ReplaceAll(a, annotation, "")
		}
		// The last word is the parameter's name if another word or a star precedes it.
		head := strings.TrimSpace(nameRE.ReplaceAllString(a, ""))
		if head != "" && nameRE.FindString(a) != "const" {
			a = head
		}
		types = append(types, a)
	}
	return types
}

// pointsTo returns the struct or callback that a type is or points to, or "" if it is not one of ours.
func pointsTo(typ string) string {
	typ = strings.Trim(strings.ReplaceAll(typ, "const", ""), "* ")
	if _, ok := mirrored[typ]; ok {
		return typ
	}
	return ""
}

// comparison returns a C program that compiles only if the preamble's declarations match the headers, and the
// mismatches that the names alone show.
func comparison(preamble, headers string) (text string, wrong []string) {
	var c strings.Builder
	fmt.Fprintln(&c, "#include <stddef.h>\n#include \"wgpu.h\"")
	ours, theirs := prototypes(preamble), prototypes(headers)
	for name := range ours {
		if strings.HasPrefix(name, "wgpu") {
			fmt.Fprintf(&c, "#define %s our_%s\n", name, name)
		}
	}
	fmt.Fprintln(&c, preamble)
	fmt.Fprintln(&c, "#define POINTER(T) (__builtin_classify_type((T)0) == 5)\n"+
		"#define SAME(T, U, what) _Static_assert(sizeof(T) == sizeof(U) && POINTER(T) == POINTER(U), what)")
	fits := func(what, mine, other string) {
		if mine == "void" || other == "void" {
			if mine != other {
				wrong = append(wrong, fmt.Sprintf("%s: %s, the header has %s", what, mine, other))
			}
			return
		}
		fmt.Fprintf(&c, "SAME(%s, %s, \"%s\");\n", mine, other, what)
		bare := strings.Trim(strings.ReplaceAll(other, "const", ""), "* ")
		if s := pointsTo(mine); s != "" && !slices.Contains(mirrored[s].theirs, bare) {
			wrong = append(wrong, fmt.Sprintf("%s: %s, the header has %s", what, mine, other))
		}
	}
	same := func(name, theirName string) {
		mine, other := ours[name], theirs[theirName]
		if len(mine) != len(other) {
			wrong = append(wrong, fmt.Sprintf("%s: %q, the header has %q", name, mine, other))
			return
		}
		for i := range mine {
			fits(fmt.Sprintf("%s, type %d", name, i), mine[i], other[i])
		}
	}
	for name := range ours {
		if strings.HasPrefix(name, "wgpu") {
			same(name, name)
			continue
		}
		for _, t := range mirrored[name].theirs {
			if _, ok := theirs[t]; ok {
				same(name, t)
			}
		}
	}
	for name, m := range mirrored {
		for _, t := range m.theirs {
			if m.fields == nil {
				continue
			}
			fmt.Fprintf(&c, "_Static_assert(sizeof(%s) == sizeof(%s), \"%s\");\n", name, t, name)
			for _, f := range m.fields {
				fmt.Fprintf(&c, "_Static_assert(offsetof(%[1]s, %[2]s) == offsetof(%[3]s, %[4]s), "+
					"\"%[1]s.%[2]s\");\n", name, f[0], t, f[1])
			}
		}
	}
	for _, e := range equal {
		fmt.Fprintf(&c, "_Static_assert((int)%s == (int)%s, \"%s\");\n", e[0], e[1], e[1])
	}
	return c.String(), wrong
}

func TestDeclarationsAreThoseOfTheLibrarysHeaders(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cogentcore/webgpu").Output()
	if err != nil {
		t.Fatal(err)
	}
	include := filepath.Join(strings.TrimSpace(string(out)), "wgpu", "lib")
	var headers bytes.Buffer
	for _, name := range []string{"webgpu.h", "wgpu.h"} {
		text, err := os.ReadFile(filepath.Join(include, name))
		if err != nil {
			t.Fatal(err)
		}
		headers.Write(text)
	}
	source, err := os.ReadFile("native.go")
	if err != nil {
		t.Fatal(err)
	}
	preamble := preambleRE.FindStringSubmatch(string(source))
	if preamble == nil {
		t.Fatal("native.go has no C preamble")
	}
	if n := len(prototypes(preamble[1])); n != 24 {
		t.Errorf("%d prototypes and callbacks were found in native.go, want 24: parsed wrongly", n)
	}
	compiler, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	compile := func(preamble string) string {
		text, wrong := comparison(preamble, headers.String())
		c := exec.Command(strings.Fields(string(compiler))[0], "-x", "c", "-fsyntax-only", "-I", include, "-")
		c.Stdin = strings.NewReader(text)
		said, err := c.CombinedOutput()
		if err != nil {
			wrong = append(wrong, string(said))
		}
		return strings.Join(wrong, "\n")
	}
	if wrong := compile(preamble[1]); wrong != "" {
		t.Error(wrong)
	}
	for _, change := range [][2]string{
		{"buffer, uint64_t offset, void const *data", "buffer, uint32_t offset, void const *data"},
		{"uint32_t wait, void const *)", "uint32_t wait)"},
		{"extern void wgpuBufferUnmap", "extern void *wgpuBufferUnmap"},
		{"Pass(void *encoder, passDescriptor const *)", "Pass(void *encoder, labelled const *)"},
		{"typeInstanceExtras = 0x00030006", "typeInstanceExtras = 0x00030007"},
		{"uint32_t backends, flags;", "uint32_t flags, backends;"},
		{"(*mapCallback)(int status,", "(*mapCallback)(int64_t status,"},
	} {
		changed := strings.Replace(preamble[1], change[0], change[1], 1)
		if changed == preamble[1] || compile(changed) == "" {
			t.Errorf("%s was accepted", change[1])
		}
	}
}
