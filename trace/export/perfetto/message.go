package perfetto

// message is an encoded protobuf message. The methods append a field:
// https://protobuf.dev/programming-guides/encoding describes the encoding.
type message []byte

// Wire types.
const (
	varintType = 0
	bytesType  = 2
)

func (m *message) varint(v uint64) {
	for ; v >= 0x80; v >>= 7 {
		*m = append(*m, byte(v)|0x80)
	}
	*m = append(*m, byte(v))
}

func (m *message) tag(field, wire int) { m.varint(uint64(field)<<3 | uint64(wire)) }

// uint appends an unsigned integer, an enum or a bool.
func (m *message) uint(field int, v uint64) {
	m.tag(field, varintType)
	m.varint(v)
}

// int appends an int64. Negative numbers take 10 bytes.
func (m *message) int(field int, v int64) { m.uint(field, uint64(v)) }

func (m *message) string(field int, s string) {
	m.tag(field, bytesType)
	m.varint(uint64(len(s)))
	*m = append(*m, s...)
}

// message appends a message as a field.
func (m *message) message(field int, inner message) {
	m.tag(field, bytesType)
	m.varint(uint64(len(inner)))
	*m = append(*m, inner...)
}
