"""Measurements of the DTR prototype's authors for their published logs (Kirisame et al. 2021, simrd): peaks of the
recorded runs, and the time of their heuristic's runs over the time with all memory. Figures of other papers are in
their own programs (*_figures.cc)."""

from __future__ import annotations

MB, GB = 10**6, 10**9

PEAKS_MB = {"transformer-10": 9868, "unet-6": 8416}
DTR_RATIOS = {  # log -> GB -> ratio
    "transformer-10": {8: 1.112, 6: 1.142, 4: 1.187, 2: 1.592},
    "unet-6": {8: 1.065, 6: 1.139, 4: 1.245},
}
PEAK_TOLERANCE = 0.005
