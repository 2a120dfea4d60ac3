package ops

// reason says why a plan took its route.
type reason uint8

// The reasons for routes.
const (
	reasonNone reason = iota
	sameShapes
	broadcastShapes
	oneToken
	manyTokens
	wideHead
	reasons
)

// String is the reason as people read it.
func (r reason) String() string {
	return [...]string{
		reasonNone:      "",
		sameShapes:      "operands have one shape",
		broadcastShapes: "an operand is repeated along a dim",
		oneToken:        "S = 1",
		manyTokens:      "S > 1",
		wideHead:        "D > 128",
	}[r]
}
