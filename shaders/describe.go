package shaders

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// maxParams is the largest number of fields of a params block.
const maxParams = 64

// The pieces of WGSL that say what a kernel is. Comments are gone before these are matched.
var (
	commentRE   = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	entryRE     = regexp.MustCompile(`(?s)@compute\s*@workgroup_size\(([^)]*)\)\s*fn\s+(\w+)`)
	bindingRE   = regexp.MustCompile(`(@group\((\d+)\)\s*)?@binding\((\d+)\)\s*(@group\((\d+)\)\s*)?var\s*<\s*(\w+)\s*(?:,\s*(\w+)\s*)?>\s*(\w+)\s*:\s*([^;]+);`)
	structRE    = regexp.MustCompile(`struct\s+(\w+)\s*\{([^}]*)\}`)
	constRE     = regexp.MustCompile(`const\s+(\w+)\s*(?::\s*\w+\s*)?=\s*([^;]+);`)
	workgroupRE = regexp.MustCompile(`var\s*<\s*workgroup\s*>\s*(\w+)\s*:\s*([^;]+);`)
	scalarRE    = regexp.MustCompile(`\b([uif]32|f16)\b`)
	tooNewRE    = regexp.MustCompile(`\b(enable|override|const_assert|requires|diagnostic|dot4I8Packed|dot4U8Packed|unpack4xI8|unpack4xU8|pack4xI8|pack4xU8)\b`)
)

// describe reads from the source what the kernel is.
func (k *Kernel) describe() error {
	src := commentRE.ReplaceAllString(k.Source, " ")
	if word := tooNewRE.FindString(src); word != "" {
		return fmt.Errorf("uses %s, which the WGSL front ends in use do not have", word)
	}
	entries := entryRE.FindAllStringSubmatch(src, -1)
	if len(entries) != 1 || entries[0][2] != "main" {
		return fmt.Errorf("has %d compute entry points, want one, main", len(entries))
	}
	if err := k.readWorkgroupSize(entries[0][1]); err != nil {
		return err
	}
	structs := map[string]string{}
	for _, m := range structRE.FindAllStringSubmatch(src, -1) {
		structs[m[1]] = m[2]
	}
	if err := k.readBindings(src, structs); err != nil {
		return err
	}
	consts := map[string]int{}
	for _, m := range constRE.FindAllStringSubmatch(src, -1) {
		if n, err := product(m[2], consts); err == nil {
			consts[m[1]] = n
		}
	}
	for _, m := range workgroupRE.FindAllStringSubmatch(src, -1) {
		n, _, err := sizeOf(m[2], consts)
		if err != nil {
			return fmt.Errorf("workgroup variable %s: %w", m[1], err)
		}
		k.WorkgroupBytes += (n + 15) / 16 * 16
	}
	return nil
}

func (k *Kernel) readWorkgroupSize(list string) error {
	k.WorkgroupSize = [3]int{1, 1, 1}
	for i, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue // a trailing comma
		}
		n, err := product(s, nil)
		if err != nil || n < 1 || i > 2 {
			return fmt.Errorf("workgroup_size(%s): want one to three positive integer literals", list)
		}
		k.WorkgroupSize[i] = n
	}
	return nil
}

func (k *Kernel) readBindings(src string, structs map[string]string) error {
	uniform := false
	for i, m := range bindingRE.FindAllStringSubmatch(src, -1) {
		group, number, space, access, name, typ := m[2]+m[5], m[3], m[6], m[7], m[8], strings.TrimSpace(m[9])
		if group != "0" || number != strconv.Itoa(i) {
			return fmt.Errorf("binding %s is group %s binding %s, want group 0 binding %d", name, group,
				number, i)
		}
		if uniform {
			return fmt.Errorf("binding %s comes after the params, which are the last", name)
		}
		switch {
		case space == "storage" && (access == "" || access == "read"):
			k.Storage = append(k.Storage, Storage{Name: name, Elem: scalarRE.FindString(typ)})
		case space == "storage" && access == "read_write":
			k.Storage = append(k.Storage, Storage{Name: name, Elem: scalarRE.FindString(typ), Write: true})
		case space == "uniform":
			uniform = true
			fields, ok := structs[typ]
			if !ok {
				return fmt.Errorf("params %s: %s is not a struct of this file", name, typ)
			}
			if err := k.readParams(fields); err != nil {
				return fmt.Errorf("struct %s: %w", typ, err)
			}
		default:
			return fmt.Errorf("binding %s is var<%s, %s>, want storage or uniform", name, space, access)
		}
	}
	if n := strings.Count(src, "@binding"); n != len(k.Storage)+btoi(uniform) {
		return fmt.Errorf("has %d bindings, of which %d can be read", n, len(k.Storage)+btoi(uniform))
	}
	if len(k.Storage) == 0 {
		return errors.New("has no storage bindings")
	}
	return nil
}

func (k *Kernel) readParams(fields string) error {
	for _, f := range strings.Split(fields, ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		name, typ, _ := strings.Cut(f, ":")
		name, typ = strings.TrimSpace(name), strings.TrimSpace(typ)
		if typ != "u32" && typ != "i32" && typ != "f32" {
			return fmt.Errorf("field %s is %s, want u32, i32 or f32", name, typ)
		}
		k.Params = append(k.Params, Param{Name: name, Type: typ, Offset: 4 * len(k.Params)})
	}
	if n := len(k.Params); n == 0 || n > maxParams {
		return fmt.Errorf("has %d fields, want 1 to %d", n, maxParams)
	}
	return nil
}

// product is the value of literals and constants multiplied.
func product(s string, consts map[string]int) (int, error) {
	n := 1
	for _, factor := range strings.Split(s, "*") {
		factor = strings.TrimSpace(factor)
		v, ok := consts[factor]
		if !ok {
			var err error
			if v, err = strconv.Atoi(strings.TrimRight(factor, "ui")); err != nil {
				return 0, fmt.Errorf("%q is no integer literal or constant", factor)
			}
		}
		n *= v
	}
	return n, nil
}

// sizeOf is the size and alignment of a type in workgroup memory.
func sizeOf(typ string, consts map[string]int) (size, align int, err error) {
	typ = strings.TrimSpace(typ)
	switch typ {
	case "u32", "i32", "f32", "bool", "atomic<u32>", "atomic<i32>":
		return 4, 4, nil
	}
	head, inner, ok := strings.Cut(typ, "<")
	inner, closed := strings.CutSuffix(strings.TrimSpace(inner), ">")
	switch head = strings.TrimSpace(head); {
	case !ok || !closed:
	case head == "vec2":
		return 8, 8, nil
	case head == "vec3":
		return 12, 16, nil
	case head == "vec4":
		return 16, 16, nil
	case head == "array":
		comma := strings.LastIndex(inner, ",")
		if comma < 0 {
			return 0, 0, fmt.Errorf("array %s has no length", typ)
		}
		n, err := product(inner[comma+1:], consts)
		if err != nil {
			return 0, 0, err
		}
		size, align, err := sizeOf(inner[:comma], consts)
		if err != nil {
			return 0, 0, err
		}
		return n * ((size + align - 1) / align * align), align, nil
	}
	return 0, 0, fmt.Errorf("type %s: want a scalar, a vector, or an array of them", typ)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
