// Package experts shows how the routers of a mixture of experts divided tokens among the experts, and what
// the padding of tiles costs.
package experts
