// Package audio has the kernels of the ops on sounds: WAVE files, spectrograms and
// mel-frequency cepstral coefficients.
//
// A spectrogram has for each channel and each window of samples, multiplied by a Hann
// window and filled up with zeros to a power of two, the squares or the amounts of the
// Fourier coefficients up to half the rate. Coefficients are taken of the logarithms of
// what a bank of triangular filters, equally far apart on the mel scale, lets through.
// All is computed in double precision, as TensorFlow does.
package audio

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{{
		"DecodeWav":        {Build: buildDecodeWav},
		"EncodeWav":        {Build: buildEncodeWav},
		"AudioSpectrogram": {Build: buildSpectrogram},
		"Mfcc":             {Build: buildMfcc},
	}}
}
