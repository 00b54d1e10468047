"""Figures from the text of Sekiyama et al. 2018 ("Profile-guided memory optimization for deep neural networks"). The
heights of the bars in their figures are not in the text, so they are not here."""

from __future__ import annotations

GB = 10**9  # the paper does not say which; with 2^30 its two figures of AlexNet would be 7 % more
P100_MEMORY = 16 << 30  # section 5.1

NAIVE_ALEXNET_32 = 1.50 * GB  # section 5.1: "network-wise memory allocation"
POOL_ALEXNET_32 = 1.21 * GB  # section 5.1
MOST_SAVED = 0.495  # abstract; the paper does not say by which network
SAVED_IN_INFERENCE = {"googlenet": 0.126, "resnet50": 0.100, "seq2seq": 0.146}  # sections 5.2, 5.3
INCEPTION_RESNET_OVER_ALEXNET = 12.5  # section 1: "in some configuration"
OPTIMA = {"alexnet": 10169344, "googlenet": 12202496}  # section 5.2: inference, bytes
SPEED_UP_INCEPTION_RESNET = 2.19  # section 5.2: training at equal batch
SPEED_UP_OF_LARGER_BATCH = 3.95  # section 5.2: images a second, optimised at 64 against original at 32
SEQ2SEQ_INFERENCE_TIME_SAVED = 0.238  # section 5.3
WARM_UP, MEASURED = 1000, 2000  # section 5.1: mini-batches


def of_bar(network: str, mode: str, batch: int) -> str:
    """The text's figures for one of Figure 2's bars."""
    if (network, mode, batch) == ("alexnet", "training", 32):
        return f"orig {POOL_ALEXNET_32 / GB:.2f} GB, naive {NAIVE_ALEXNET_32 / GB:.2f} GB"
    if mode == "inference" and network in SAVED_IN_INFERENCE:
        return f"{-SAVED_IN_INFERENCE[network]:+.1%}"
    if network.startswith("inception_resnet") and (mode, batch) == ("training", 64):
        return "opt within 16 GB, orig not"
    return "bar only"
