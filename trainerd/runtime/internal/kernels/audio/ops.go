// Package audio has the kernels of the ops on sounds: WAVE files, spectrograms and
// mel-frequency cepstral coefficients.
//
// A spectrogram takes each window of samples of each channel, multiplied by a Hann window and
// padded with zeros to a power of two, and has the squares or magnitudes of its Fourier
// coefficients up to half the sample rate. Cepstral coefficients are the cosine transform of the
// logarithms of the outputs of a bank of triangular filters, equally spaced on the mel scale.
// Everything is computed in double precision, as in TensorFlow.
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
