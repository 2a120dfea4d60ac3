// Package vision contains the operators on images and other sampled signals: convolution, pooling,
// upsampling and sampling at given points. The operators are registered in package ops.
package vision
