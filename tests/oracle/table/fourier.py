"""Fourier transforms and convolutions, against jax.numpy.fft on complex numbers."""

import jax.numpy as jnp

from cases import Entry, real

F = jnp.fft


def parts(z):
    return [z.real, z.imag]


def of_pair(f):
    return lambda x, y: parts(f(x + 1j * y))


def pairs(*shapes):
    return [[real(*shape), real(*shape)] for shape in shapes]


def singles(*shapes):
    return [[real(*shape)] for shape in shapes]


PAIRS = [
    # 67 is prime and too long for a matrix; 96 takes three stages.
    Entry("fft", "(fft (list x y))", of_pair(F.fft), pairs((6,), (2, 5), (1,), (67,), (96,))),
    Entry("ifft", "(ifft (list x y))", of_pair(F.ifft), pairs((6,), (2, 5), (1,), (67,))),
    Entry("fft2", "(fft2 (list x y))", of_pair(F.fft2), pairs((2, 3), (2, 3, 2), (6, 10))),
    Entry("ifft2", "(ifft2 (list x y))", of_pair(F.ifft2), pairs((2, 3), (2, 3, 2), (6, 10))),
    Entry("irfft", "(irfft (list x y))", lambda x, y: F.irfft(x + 1j * y), pairs((4,), (2, 3), (2,), (25,))),
    Entry("irfft", "(irfft (list x y) :n 5)", lambda x, y: F.irfft(x + 1j * y, 5), pairs((3,), (2, 3))),
    Entry("irfft2", "(irfft2 (list x y))", lambda x, y: F.irfft2(x + 1j * y), pairs((2, 3), (3, 3, 2))),
    Entry("irfft2", "(irfft2 (list x y) :n 3)", lambda x, y: F.irfft2(x + 1j * y, (3, 3)), pairs((3, 2))),
]

REAL = [
    Entry("rfft", "(rfft x)", lambda x: parts(F.rfft(x)), singles((6,), (2, 5), (2,), (1,), (67,), (48,))),
    # Of even lengths, some imaginary parts are 0 but for rounding.
    Entry("rfft2", "(rfft2 x)", lambda x: parts(F.rfft2(x)), singles((3, 5), (2, 3, 3), (5, 9))),
    Entry("fftfreq", "(* x (fftfreq 6 0.5))", lambda x: x * F.fftfreq(6, 0.5), singles((6,)), order=1),
    Entry("rfftfreq", "(* x (rfftfreq 7 0.5))", lambda x: x * F.rfftfreq(7, 0.5), singles((4,)), order=1),
]


def convolve(mode):
    return lambda x, y: jnp.convolve(x, y, mode, precision="highest")


CONVOLUTIONS = [
    Entry("convolve", "(convolve x y)", convolve("full"), [[real(5), real(3)], [real(2), real(4)], [real(200), real(150)]]),
    Entry("convolve", "(convolve x y :mode :same)", convolve("same"), [[real(5), real(3)], [real(3), real(4)]]),
    Entry("convolve", "(convolve x y :mode :valid)", convolve("valid"), [[real(5), real(3)], [real(3), real(4)]]),
]

ENTRIES = PAIRS + REAL + CONVOLUTIONS
