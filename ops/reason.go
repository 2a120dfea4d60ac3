package ops

// reason says why a plan took its route.
type reason uint8

// The reasons for routes.
const (
	reasonNone reason = iota
	sameShapes
	broadcastShapes
	fewPositions
	somePositions
	oneToken
	manyTokens
	fewTokens
	wideHead
	manyScores
	oneRow
	lastRow
	leftInSplits
	manyRows
	atMost4Rows
	atMost16Rows
	atMost64Rows
	fewTiles64
	fewTiles128
	manyTiles128
)

// String is the reason as people read it.
func (r reason) String() string {
	return [...]string{
		reasonNone:      "",
		sameShapes:      "operands have one shape",
		broadcastShapes: "an operand is repeated along a dim",
		fewPositions:    "S = 1, and few positions are seen",
		somePositions:   "S = 1, and so few positions are seen that products put their splits together",
		oneToken:        "S = 1",
		manyTokens:      "S > 1",
		fewTokens:       "S > 1, and tiles of tokens do not fill the device",
		wideHead:        "D > 128",
		manyScores:      "scores would take more memory than the device binds",
		oneRow:          "M = 1",
		lastRow:         "M > 1, and the last row is all that is read",
		leftInSplits:    "M = 1, and x is left in splits",
		manyRows:        "M > 1",
		atMost4Rows:     "M <= 4",
		atMost16Rows:    "M <= 16",
		atMost64Rows:    "M <= 64, tiles of 64 rows fill half of the device at most, and K can be split in four",
		fewTiles64:      "M <= 64, or tiles of 64 rows fill the device once at most",
		fewTiles128:     "tiles of 128 rows fill half of the device at most, and K can be split",
		manyTiles128:    "tiles of 128 rows fill more than half of the device, or K cannot be split",
	}[r]
}
