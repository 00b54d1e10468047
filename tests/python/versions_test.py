"""What hotpack says of a PyTorch, a driver or a platform that it does not work with: one clear line."""

import types
import unittest
from unittest import mock

from hotpack import Error, _versions


def torch(version: str, cuda: "str | None"):
    return types.SimpleNamespace(__version__=version, version=types.SimpleNamespace(cuda=cuda))


class VersionsTest(unittest.TestCase):
    def refused(self, function, *arguments) -> str:
        with self.assertRaises(Error) as caught:
            function(*arguments)
        text = str(caught.exception)
        self.assertNotIn("\n", text)
        return text

    def test_what_works_is_taken(self):
        for version, cuda in (("2.4.0", "12.1"), ("2.11.0+cu130", "13.0"), ("2.15.0+cu132", "13.2"), ("3.0.0a0+git1", "13.9")):
            _versions.check_torch(torch(version, cuda), simulated=False)
        _versions.check_torch(torch("2.15.0", "13.2"), simulated=True)
        _versions.check_driver(12000)
        _versions.check_driver(13000)
        _versions.check_platform()

    def test_torch_too_old(self):
        self.assertIn("needs PyTorch 2.4 or later; this is 2.3.1", self.refused(_versions.check_torch, torch("2.3.1+cu121", "12.1"), False))
        self.assertIn("needs PyTorch", self.refused(_versions.check_torch, torch("odd", "12.1"), False))

    def test_torch_without_cuda_or_with_an_old_one(self):
        self.assertIn("built without CUDA", self.refused(_versions.check_torch, torch("2.15.0+cpu", None), False))
        self.assertIn("this one is for CUDA 11.8", self.refused(_versions.check_torch, torch("2.6.0", "11.8"), False))

    def test_the_simulated_runtime_is_of_cuda_13(self):
        text = self.refused(_versions.check_torch, torch("2.8.0", "12.8"), True)
        self.assertIn("the simulated device needs a PyTorch for CUDA 13", text)

    def test_driver_too_old(self):
        self.assertIn("this one is for CUDA 11.4", self.refused(_versions.check_driver, 11040))

    def test_platforms(self):
        with mock.patch("platform.machine", return_value="aarch64"):
            self.assertIn("Linux on x86-64, not on Linux aarch64", self.refused(_versions.check_platform))
        with mock.patch("platform.libc_ver", return_value=("glibc", "2.17")):
            self.assertIn("glibc 2.34 or later; this is 2.17", self.refused(_versions.check_platform))


if __name__ == "__main__":
    unittest.main()
