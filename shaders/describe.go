package shaders

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
)

// maxParams is the largest number of fields that a params struct may have.
const maxParams = 64

// Regular expressions for the declarations in WGSL that describe a kernel: its entry point, bindings and
// structs. describe removes comments from the source before it uses them.
var (
	commentRE = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	entryRE   = regexp.MustCompile(`(?s)@compute\s*@workgroup_size\(([^)]*)\)\s*fn\s+(\w+)`)
	bindingRE = regexp.MustCompile(`(@group\((\d+)\)\s*)?@binding\((\d+)\)\s*(@group\((\d+)\)\s*)?var\s*<\s*(\w+)\s*(?:,\s*(\w+)\s*)?>\s*(\w+)\s*:\s*([^;]+);`)
	structRE  = regexp.MustCompile(`struct\s+(\w+)\s*\{([^}]*)\}`)
	memberRE  = regexp.MustCompile(`^\s*\.\s*\w+`)
	scalarRE  = regexp.MustCompile(`\b([uif]32|f16)\b`)
)

// tooNew lists WGSL keywords and builtins that the supported WGSL compilers do not implement.
var tooNew = []string{
	"enable", "override", "const_assert", "requires", "diagnostic", "dot4I8Packed", "dot4U8Packed", "unpack4xI8",
	"unpack4xU8", "pack4xI8", "pack4xU8",
}

// describe parses k.Source, and sets the workgroup size, bindings and params of k.
func (k *Kernel) describe() error {
	src := commentRE.ReplaceAllString(k.Source, " ")
	for _, word := range tooNew {
		for range places(src, word) {
			return fmt.Errorf("the kernel uses %s, which the supported WGSL compilers do not implement", word)
		}
	}
	entries := entryRE.FindAllStringSubmatch(src, -1)
	if len(entries) != 1 {
		return fmt.Errorf("the kernel has %d compute entry points; want one, named main", len(entries))
	}
	if name := entries[0][2]; name != "main" {
		return fmt.Errorf("the entry point is named %s; want main", name)
	}
	if err := k.readWorkgroupSize(entries[0][1]); err != nil {
		return err
	}
	structs := map[string]string{}
	for _, m := range structRE.FindAllStringSubmatch(src, -1) {
		structs[m[1]] = m[2]
	}
	return k.readBindings(src, structs)
}

func (k *Kernel) readWorkgroupSize(list string) error {
	k.WorkgroupSize = [3]int{1, 1, 1}
	for i, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue // a trailing comma
		}
		n, err := strconv.Atoi(strings.TrimRight(s, "ui"))
		if err != nil || n < 1 || i > 2 {
			return fmt.Errorf("workgroup_size(%s) is invalid: want one to three positive integer literals",
				list)
		}
		k.WorkgroupSize[i] = n
	}
	return nil
}

func (k *Kernel) readBindings(src string, structs map[string]string) error {
	uniform := false
	for i, m := range declarations(src) {
		group, number, space, access, name, typ := m[2]+m[5], m[3], m[6], m[7], m[8], strings.TrimSpace(m[9])
		if n, err := strconv.Atoi(number); group == "0" && err == nil && n > i {
			return fmt.Errorf("group 0 has no @binding(%d): the next declared binding is %s with "+
				"@binding(%d)",
				i, name, n)
		}
		if group != "0" || number != strconv.Itoa(i) {
			return fmt.Errorf("%s is declared as @group(%s) @binding(%s); want @group(0) @binding(%d)",
				name, group, number, i)
		}
		if uniform {
			return fmt.Errorf("binding %s comes after the params, but the params must be the last binding",
				name)
		}
		switch {
		case space == "storage" && (access == "" || access == "read"):
			k.Storage = append(k.Storage, Storage{Name: name, Elem: scalarRE.FindString(typ), Read: true})
		case space == "storage" && access == "read_write":
			k.Storage = append(k.Storage, Storage{
				Name: name, Elem: scalarRE.FindString(typ), Read: reads(src, name), Write: true,
			})
		case space == "uniform":
			uniform = true
			fields, ok := structs[typ]
			if !ok {
				return fmt.Errorf("params %s: its type %s is not a struct that this file declares", name, typ)
			}
			if err := k.readParams(fields); err != nil {
				return fmt.Errorf("struct %s: %w", typ, err)
			}
		default:
			return fmt.Errorf("binding %s is declared as var<%s, %s>; want storage (read or read_write) or uniform", name, space, access)
		}
	}
	if n := strings.Count(src, "@binding"); n != len(k.Storage)+btoi(uniform) {
		return fmt.Errorf("the kernel has %d bindings, but only %d of them could be parsed", n,
			len(k.Storage)+btoi(uniform))
	}
	if len(k.Storage) == 0 {
		return errors.New("the kernel has no storage bindings")
	}
	return nil
}

// declarations returns the submatches of bindingRE for each binding that the source declares. It matches
// bindingRE against one statement at a time, because matching it against a whole source is slow.
func declarations(src string) (list [][]string) {
	for statement := range strings.SplitAfterSeq(src, ";") {
		if !strings.Contains(statement, "@binding") {
			continue
		}
		if m := bindingRE.FindStringSubmatch(statement); m != nil {
			list = append(list, m)
		}
	}
	return list
}

func (k *Kernel) readParams(fields string) error {
	for _, f := range strings.Split(fields, ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		name, typ, _ := strings.Cut(f, ":")
		name, typ = strings.TrimSpace(name), strings.TrimSpace(typ)
		if typ != "u32" && typ != "i32" && typ != "f32" {
			return fmt.Errorf("field %s has type %s; want u32, i32 or f32", name, typ)
		}
		k.Params = append(k.Params, Param{Name: name, Type: typ, Offset: 4 * len(k.Params)})
	}
	if n := len(k.Params); n == 0 || n > maxParams {
		return fmt.Errorf("it has %d fields; want 1 to %d", n, maxParams)
	}
	return nil
}

// reads(src, name) reports whether a source reads the variable `name`. The access mode of the variable is
// read_write. Every use counts as a read, unless the variable (with or without an index) is the left side of
// an assignment with =.
func reads(src, name string) bool {
	for at := range places(src, name) {
		before, after := strings.TrimRight(src[:at], " \t\n"), src[at+len(name):]
		if strings.HasSuffix(before, ">") && strings.HasPrefix(strings.TrimSpace(after), ":") {
			continue // this is the declaration of the variable
		}
		if strings.HasSuffix(before, ".") {
			continue // this is a struct field with the same name
		}
		after, ok := pastIndex(strings.TrimSpace(after))
		if m := memberRE.FindString(after); ok && m != "" {
			after = after[len(m):]
		}
		after = strings.TrimSpace(after)
		if !ok || !strings.HasPrefix(after, "=") || strings.HasPrefix(after, "==") {
			return true
		}
	}
	return false
}

// places(src, word) yields the offset of each occurrence of an identifier in a source. It skips occurrences
// that are part of a longer identifier.
func places(src, word string) iter.Seq[int] {
	of := func(i int) bool { // of(i) reports whether byte i can be part of an identifier
		if i < 0 || i >= len(src) {
			return false
		}
		c := src[i]
		return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	return func(yield func(int) bool) {
		for from := 0; ; from += len(word) {
			i := strings.Index(src[from:], word)
			if i < 0 {
				return
			}
			from += i
			if !of(from-1) && !of(from+len(word)) && !yield(from) {
				return
			}
		}
	}
}

// pastIndex returns the rest of s after an index in brackets at the start of s. `ok` is false if s does not
// start with such an index.
func pastIndex(s string) (rest string, ok bool) {
	depth := 0
	for i, c := range s {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			return s[i+1:], i > 0
		}
	}
	return "", false
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
