"""A test case in which the simulated device has a size that the test may change."""

import os
import unittest

MIB = 1 << 20


class DeviceSizeCase(unittest.TestCase):
    def setUp(self):
        self.before = os.environ.get("SIMGPU_MEMORY")
        os.environ["SIMGPU_MEMORY"] = str(1 << 40)

    def tearDown(self):
        os.environ.pop("SIMGPU_MEMORY")
        if self.before is not None:
            os.environ["SIMGPU_MEMORY"] = self.before
