package gpu

import (
	"regexp"
	"strconv"
	"strings"
)

// WorkgroupBytes returns the size of the workgroup memory that a WGSL source declares, according to the
// section "Alignment and Size" of the WGSL specification. `ok` is false if WorkgroupBytes cannot parse a
// declaration. It does not parse structs, and it parses an array length only if the length is a product of
// numbers and constants. Drivers enforce the device's limit with WorkgroupBytes. The native library does not
// enforce this limit, and a kernel that exceeds it has undefined behavior.
func WorkgroupBytes(source string) (bytes uint64, ok bool) {
	source = comments.ReplaceAllString(source, "")
	constants := map[string]uint64{}
	for _, m := range constantDecl.FindAllStringSubmatch(source, -1) {
		if n, ok := product(m[2], constants); ok {
			constants[m[1]] = n
		}
	}
	for _, m := range workgroupDecl.FindAllStringSubmatch(source, -1) {
		size, align, ok := typeSize(m[1], constants)
		if !ok || bytes > 1<<62 {
			return 0, false
		}
		bytes = roundUp(bytes, align) + size
	}
	return bytes, true
}

var (
	comments      = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)`)
	constantDecl  = regexp.MustCompile(`const\s+(\w+)\s*(?::\s*\w+\s*)?=\s*([^;]+);`)
	workgroupDecl = regexp.MustCompile(`var\s*<\s*workgroup\s*>\s*\w+\s*:\s*([^;=]+);`)
	scalarType    = regexp.MustCompile(`^(?:f32|i32|u32|bool|atomic<[iu]32>)$`)
	vectorType    = regexp.MustCompile(`^vec([234])(?:[fiu]|<(?:f32|i32|u32|bool)>)$`)
	matrixType    = regexp.MustCompile(`^mat([234])x([234])(?:f|<f32>)$`)
	arrayType     = regexp.MustCompile(`^array<(.+),([^,<>]+),?>$`)
)

// typeSize returns the size and alignment of a WGSL type.
func typeSize(t string, constants map[string]uint64) (size, align uint64, ok bool) {
	t = strings.Join(strings.Fields(t), "")
	if scalarType.MatchString(t) {
		return 4, 4, true
	}
	if m := vectorType.FindStringSubmatch(t); m != nil {
		n := uint64(m[1][0] - '0')
		return 4 * n, vectorAlign(n), true
	}
	if m := matrixType.FindStringSubmatch(t); m != nil {
		columns, rows := uint64(m[1][0]-'0'), uint64(m[2][0]-'0')
		return columns * vectorAlign(rows), vectorAlign(rows), true
	}
	m := arrayType.FindStringSubmatch(t)
	if m == nil {
		return 0, 0, false
	}
	n, ok := product(m[2], constants)
	if !ok {
		return 0, 0, false
	}
	size, align, ok = typeSize(m[1], constants)
	if !ok || n > 1<<30 || size > 1<<30 {
		return 0, 0, false
	}
	return n * roundUp(size, align), align, true
}

// vectorAlign returns the alignment in bytes of a vector of n 4-byte numbers. It is 8 if n is 2, and 16 if n
// is 3 or 4.
func vectorAlign(n uint64) uint64 { return 8 << min(n-2, 1) }

func roundUp(n, align uint64) uint64 { return (n + align - 1) / align * align }

// product returns the value of an expression such as "4 * N", a product of numbers and named constants.
func product(expr string, constants map[string]uint64) (uint64, bool) {
	n := uint64(1)
	for factor := range strings.SplitSeq(expr, "*") {
		factor = strings.TrimSpace(factor)
		v, ok := constants[factor]
		if !ok {
			var err error
			if v, err = strconv.ParseUint(strings.TrimRight(factor, "iu"), 10, 32); err != nil {
				return 0, false
			}
		}
		if v != 0 && n > (1<<62)/v {
			return 0, false
		}
		n *= v
	}
	return n, true
}
