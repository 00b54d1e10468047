"""Command lines of the scripts in bench/: a wrong one is one line on stderr and exit code 2."""

from __future__ import annotations

import argparse
import sys


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(2)
