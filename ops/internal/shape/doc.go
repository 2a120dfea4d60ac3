// Package shape has helper functions for the dims of tensors.
package shape
