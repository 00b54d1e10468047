#!/usr/bin/env python3
"""Every test runs on the simulated device at its strictest (simgpu/README.md, Settings).

    strict_tests_test.py CTEST BUILD_DIR

It reads ctest's own list. A test of other rules is named here, with its reason.
"""

import json
import os
import subprocess
import sys
import unittest

STRICT = {"SIMGPU_CONTEXTS": "strict", "SIMGPU_CAPTURES": "strict"}
OTHERS = {"simgpu_capture_test_documented": "of the rules of captures only the documented ones"}


def settings(test: dict) -> dict[str, str]:
    """The simulated device's settings that this test gets, as ctest makes them: ENVIRONMENT_MODIFICATION comes last."""
    values = {one["name"]: one["value"] for one in test.get("properties", [])}
    found = dict(entry.split("=", 1) for entry in values.get("ENVIRONMENT", []))
    for entry in values.get("ENVIRONMENT_MODIFICATION", []):
        name, change = entry.split("=", 1)
        operation, value = change.split(":", 1)
        if operation != "set":
            raise ValueError(f"{entry}: only set is known here")
        found[name] = value
    return {name: value for name, value in found.items() if name in STRICT}


class StrictTests(unittest.TestCase):
    def test_every_test_has_the_strict_settings(self):
        listed = subprocess.run([sys.argv[1], "--test-dir", sys.argv[2], "--show-only=json-v1"], capture_output=True,
                                text=True, check=True).stdout
        tests = json.loads(listed)["tests"]
        self.assertGreater(len(tests), 20)
        self.assertEqual({test["name"] for test in tests if settings(test) != STRICT} - set(OTHERS), set())

    def test_ctest_passes_them_on(self):
        self.assertEqual({name: os.environ.get(name) for name in STRICT}, STRICT)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
