"""A small training loop with JAX, whose arrays come from hotpack by the preload.

    hotpack run -- python jax_train.py
    SIMGPU_CHECK=0 hotpack run --simulate -- python jax_train.py      # without a GPU

JAX asks the driver for each array only with XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async (cuMemAllocFromPoolAsync of the
default pool) and without preallocation, which is set below. With "platform" the XLA of JAX 0.10 maps memory itself
(cuMemCreate), and by default it takes most of the device at once: neither is hotpack's.

SIMGPU_CHECK=0: XLA learns by a host function (cuLaunchHostFunc) that a transfer is over, an order that the simulated
device's checker does not know; it reports XLA's own blocks with HOTPACK=0 too. Tried with JAX 0.10.2
there; not on a GPU yet.
"""

import argparse
import os

import hotpack

os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "cuda_async"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
if hotpack.simulated():
    os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_command_buffer=")  # XLA's kernels in CUDA graphs
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")           # it asks CUPTI, which needs NVIDIA's driver
    from jax._src import hardware_utils

    hardware_utils.has_visible_nvidia_gpu = lambda: True  # it looks for /dev/nvidia0

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=30)
options = parser.parse_args()

WIDTH, LAYERS, ROWS = 512, 4, 256


def loss(weights: "list[jax.Array]", rows: jax.Array, wanted: jax.Array) -> jax.Array:
    for weight in weights[:-1]:
        rows = jnp.tanh(rows @ weight)
    return jnp.mean((rows @ weights[-1] - wanted) ** 2)


@jax.jit
def update(weights: "list[jax.Array]", rows: jax.Array, wanted: jax.Array) -> "tuple[list[jax.Array], jax.Array]":
    value, gradients = jax.value_and_grad(loss)(weights, rows, wanted)
    return [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients)], value


def main() -> None:
    key = jax.random.key(0)
    keys = [jax.random.fold_in(key, layer) for layer in range(LAYERS)]
    weights = [jax.random.normal(each, (WIDTH, WIDTH)) / WIDTH**0.5 for each in keys]
    rows = jax.random.normal(jax.random.fold_in(key, LAYERS), (ROWS, WIDTH))
    wanted = jnp.sin(rows)
    for _ in range(options.steps):
        weights, value = update(weights, rows, wanted)
        value.block_until_ready()
        hotpack.step()
    figures = hotpack.stats()
    print(f"loss {float(value):.4f}; by the plan from iteration {figures['steady_iteration']} on "
          f"({figures['planned']} of {figures['requests']} requests), held at most {figures['reserved_peak']} bytes")


main()
