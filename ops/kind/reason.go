package kind

// Reason says why a plan chose its route.
type Reason uint8

// The reasons for routes.
const (
	reasonNone Reason = iota
	SameShapes
	BroadcastShapes
	FewPositions
	SomePositions
	OneToken
	ManyTokens
	FewTokens
	WideHead
	ManyScores
	OneRow
	LastRow
	LeftInSplits
	ManyRows
	AtMost4Rows
	AtMost16Rows
	AtMost64Rows
	FewTiles64
	FewTiles128
	ManyTiles128
	FewPairs
	Pairs32
	Pairs64
	PairsMany
)

// String returns the reason in words.
func (r Reason) String() string {
	return [...]string{
		reasonNone:      "",
		SameShapes:      "operands have the same shape",
		BroadcastShapes: "an operand is repeated along a dim",
		FewPositions:    "S = 1, and the token attends to few positions",
		SomePositions:   "S = 1, and the positions are few enough for the linears to combine the splits",
		OneToken:        "S = 1",
		ManyTokens:      "S > 1",
		FewTokens:       "S > 1, and there are too few tiles of tokens to fill the device",
		WideHead:        "D > 128",
		ManyScores:      "the scores need more memory than the device can bind",
		OneRow:          "M = 1",
		LastRow:         "M > 1, and only the last row is computed",
		LeftInSplits:    "M = 1, and attention stores x as partial results (splits)",
		ManyRows:        "M > 1",
		AtMost4Rows:     "M <= 4",
		AtMost16Rows:    "M <= 16",
		AtMost64Rows:    "M <= 64, tiles of 64 rows fill at most half of the device, and K can be split in four",
		FewTiles64:      "M <= 64, or tiles of 64 rows fill the device at most once",
		FewTiles128:     "tiles of 128 rows fill at most half of the device, and K can be split",
		ManyTiles128:    "tiles of 128 rows fill more than half of the device, or K cannot be split",
		FewPairs:        "S > 1, and an expert has at most 11 tokens on average",
		Pairs32:         "an expert has at most 32 tokens on average",
		Pairs64:         "an expert has at most 192 tokens on average",
		PairsMany:       "an expert has more than 192 tokens on average",
	}[r]
}
