"""Compare rules for resetting counts, on the paper's chain: `python -m experiments.chainworld`.

An agent starts in A and goes to B or to D. From B it loops between B and C; in D it stays (paper,
section 3.2, figure "chainworld"). If each episode's end resets counts, ABCBCB... is always worth
more than ADDD..., and the agent never visits D. If counts last until a random reset, places visited
more often are worth less, and the agent visits every place.
"""

from collections.abc import Sequence

from experiments.common import cli
from experiments.common.screen import Screen, say
from experiments.illustrations.illustration_options import ChainworldOptions

MODULE = "experiments.chainworld"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study that the command line asks for."""
    console = Screen()
    with cli.user_errors():
        options: ChainworldOptions = cli.parse(ChainworldOptions, arguments, MODULE)
        from experiments.illustrations import chain_results  # imported here: it takes seconds

        files = chain_results.learn_and_write(options, console)
    say(console, f"saved: {' and '.join(map(str, files))}")


if __name__ == "__main__":
    main()
