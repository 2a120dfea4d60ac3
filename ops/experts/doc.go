// Package experts has the operators of mixtures of experts. A router chooses some of many experts for each
// token. An expert is an MLP, and the matrices of all experts are stacks, one on top of the other. The
// products multiply the rows of x only by the matrices of the experts that were chosen for the token.
//
// The chosen experts depend on data, but a plan depends only on shapes. So grids are large enough for any
// distribution of the tokens to the experts, and workgroups without work return at once. For one token or a
// few, each pair of a token and an expert is computed as one row times a matrix. For more tokens, the pairs
// are sorted by expert, and each expert processes its pairs in tiles.
//
// A router named NAME outputs NAME.counts, the number of tokens of each expert in the step, besides
// NAME.experts, NAME.weights and NAME.sorted. The plan of a product states its tiles (graph.Launch.Experts).
// The counts and the tiles together show how many workgroups have work, and how many rows of their tiles
// have no pair.
package experts
