"""A small training loop with CuPy arrays in hotpack's memory: least squares by gradient descent, then momentum.

    hotpack run -- python cupy_train.py

Without `hotpack run` it works too, but each release waits for its stream then (hotpack.enable_cupy()).

It needs a GPU. CuPy from PyPI has NVIDIA's runtime linked into it (cupy_backends/cuda/api/runtime), which refuses any
driver but NVIDIA's, so that on the simulated device its first call, cudaGetDevice, answers cudaErrorNotSupported; under
hotpack run --simulate this program says so in one line and ends with status 3. Not tried on a GPU yet.
"""

import argparse
import sys

import hotpack

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=30)
options = parser.parse_args()
if hotpack.simulated():
    print("cupy_train: needs a GPU: the CUDA runtime in CuPy works with NVIDIA's driver only", file=sys.stderr)
    sys.exit(3)
hotpack.enable_cupy()

import cupy  # noqa: E402

ROWS, COLUMNS = 4096, 1024


def main() -> None:
    random = cupy.random.default_rng(0)
    inputs = random.standard_normal((ROWS, COLUMNS), dtype=cupy.float32)
    wanted = inputs @ random.standard_normal((COLUMNS, 1), dtype=cupy.float32)
    weights = cupy.zeros((COLUMNS, 1), cupy.float32)
    velocity = cupy.zeros_like(weights)
    first = last = float(cupy.square(wanted).mean())
    for _ in range(options.steps):
        error = inputs @ weights - wanted
        gradient = inputs.T @ error / ROWS
        velocity *= 0.9
        velocity -= 0.1 * gradient
        weights += velocity
        last = float(cupy.square(error).mean())
        del error, gradient  # before the iteration ends, so that the next one asks for the same
        hotpack.step()
    figures = hotpack.stats()
    print(f"loss {first:.4f} to {last:.4f}; by the plan from iteration {figures['steady_iteration']} on "
          f"({figures['planned']} of {figures['requests']} requests), held at most {figures['reserved_peak']} bytes")


main()
