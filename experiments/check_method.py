"""Check that a reward keeps what all must keep: `python -m experiments.check_method FILE.py:make`.

Each line is a check and what came of it. The exit status is 1 if one has failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from experiments.common import cli
from experiments.common.screen import Screen

MODULE = "experiments.check_method"


@dataclass(frozen=True)
class CheckMethodOptions:
    """Check that a reward keeps what every method must keep, one line for each check."""

    #: FILE.py:FUNCTION, package.module:function, or a method of the package
    method: Annotated[str, tyro.conf.Positional]
    #: settings of a method of one's own
    own: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = ()
    #: part of its memory is meant to outlive episodes: do not check that they leave no trace
    lasting: bool = False
    learn: bool = True  # also learn in a corridor, which takes longer than all else


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the method, and end the process with status 1 if a check has failed."""
    with cli.user_errors():
        options: CheckMethodOptions = cli.parse(CheckMethodOptions, arguments, MODULE)
        from cbet_jax.intrinsic import own  # imported here: it takes seconds
        from cbet_jax.method_check.check import check_method, check_settings
        from cbet_jax.own_code import is_own

        name = own.load(options.method) if is_own(options.method) else options.method
        settings = check_settings(name, options.own)
        checks = check_method(settings, lasting=options.lasting, learns=options.learn)
        cli.show_checks(checks, Screen())


if __name__ == "__main__":
    main()
