"""The console script `hotpack`: the command of that name, which lies in the package."""

import os
import sys

from ._errors import Error
from ._library import find


def main() -> None:
    try:
        command = str(find("bin/hotpack"))
        os.execv(command, [command, *sys.argv[1:]])
    except Error as error:
        sys.exit(f"hotpack: {error}")
    except OSError as error:
        sys.exit(f"hotpack: {command} cannot be started: {error.strerror}")
