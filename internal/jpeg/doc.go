// Package jpeg decodes JPEG files to the pixels that TensorFlow gives, which are
// those of libjpeg-turbo: image/jpeg of the standard library has another inverse
// transform, repeats chroma samples instead of interpolating them, and cannot
// scale. It encodes pictures to the bytes that TensorFlow gives.
//
// A file is a list of segments:
//
//	FF D8                     start of image
//	FF marker, length, data   the length has two bytes, big endian, and counts itself
//	  DB  quantization tables     C4  Huffman tables
//	  C0, C1  baseline frame      C2  progressive frame
//	  DD  restart interval        EE  Adobe: colour transform
//	  DA  scan, followed by entropy-coded data in which FF is written FF 00
//	FF D9                     end of image
//
// Decoding has four steps: the coefficients of all scans are collected; each block
// of 8x8 is multiplied by its quantization table and transformed, also to 4x4, 2x2
// or 1x1 samples where a smaller picture is asked for; components with fewer
// samples are brought to the size of the picture; colours are converted.
//
// Encoding has the same steps the other way: colours, means of four samples where
// colour has half of them, blocks, transform, division by the quantization table. A
// baseline file has one scan; a progressive one has ten, some of which give one more bit
// of coefficients that came before. Its Huffman tables, and those of a file
// that is to be small, come from what a scan holds.
//
// All arithmetic is in integers and fixes each pixel: [Accurate] is the transform
// of Loeffler, Ligtenberg and Moschytz with 13 bits of fraction, [Fast] that of
// Arai, Agui and Nakajima with 8. Facts come from ITU T.81 and from the public
// descriptions of these algorithms in libjpeg-turbo; tests compare with TensorFlow.
//
// Functions may be called by several goroutines at once. Arithmetic coding, lossless
// files and samples of more than 8 bits are refused.
package jpeg
