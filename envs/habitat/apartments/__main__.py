"""Write the apartments as `.glb` files: `python -m envs.habitat.apartments DIR`."""

import argparse
import sys
from pathlib import Path

from envs.habitat.apartments import NAMES
from envs.habitat.simulator import INSTALL_HINTS


def main(arguments: list[str]) -> int:
    """Write the apartments that the command line names, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m envs.habitat.apartments", description=__doc__)
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="where to write; created if it does not exist"
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)} (default: all)"
    )
    options = parser.parse_args(arguments)
    names = options.names or NAMES
    try:
        from envs.habitat.apartments.files import paths, write

        unknown = [name for name in names if name not in NAMES]
        if unknown:
            raise ValueError(f"unknown apartment {unknown[0]!r}; there are {', '.join(NAMES)}")
        options.directory.mkdir(parents=True, exist_ok=True)
        for path in (path for name in names for path in paths(name, options.directory)):
            if path.exists():
                raise ValueError(f"{path} already exists; nothing was written")
        for name in names:
            print(write(name, options.directory))
    except ImportError as error:
        print(f"error: {error}{INSTALL_HINTS['raycast']}", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
