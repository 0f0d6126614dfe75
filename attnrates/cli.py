"""The command line: options in, one call into the rooms below, exit code out.

Exit codes: 0 everything holds; 1 a proof fails or a bound is violated; 2 bad input, told in one line on
stderr; 3 a defect of this program (with its traceback); 130 interrupted. No room is imported before its
command runs, so that `--help` and `verify` start without torch.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from enum import StrEnum
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 1000  # characters of a message: an input may be quoted in it
HOLDS, FAILS, BAD_INPUT, DEFECT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141

app = typer.Typer(
    name="attnrates",
    help="Machine-checked convergence rates for the implicit bias of self-attention, held against real runs.",
    epilog="Exit codes: 0 holds, 1 a proof or bound fails, 2 bad input, 3 a defect, 130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Rule(StrEnum):
    """Step-size rules by their short names."""

    gd = "gd"
    ngd = "ngd"
    polyak = "polyak"


class Space(StrEnum):
    """Where the iterate lives."""

    gram = "gram"
    weight = "weight"


class Reference(StrEnum):
    """Whose optimal tokens a joint run refers to."""

    final = "final"
    data = "data"


OwnTheory = Annotated[
    Path | None,
    typer.Option(
        "--theory",
        metavar="FILE.py",
        help="Theorems of your own instead of this package's. The file is a program and is run.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _version(wanted: bool) -> None:
    if wanted:
        from attnrates import __version__

        typer.echo(f"attnrates {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Machine-checked convergence rates for the implicit bias of self-attention, held against real runs."""
    del version  # its callback has run
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Examples: attnrates verify; attnrates verify norm-growth")
def verify(
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="Print this page: hypotheses, symbols, axioms, proof.")
    ] = None,
    json: Json = False,
    search: Annotated[
        bool, typer.Option("--search", help="Find the certificates anew instead of replaying them.")
    ] = False,
    latex: Annotated[
        bool,
        typer.Option("--latex", help="Print LaTeX macros for every constant, statement, bound and status."),
    ] = False,
    falsify: Annotated[
        bool, typer.Option("--falsify", help="Hunt for counterexamples to the pages not searched yet, too.")
    ] = False,
    own: OwnTheory = None,
) -> int:
    """Prove every lemma and theorem again, step by step; print the status and the axioms used by each."""
    if key is not None:
        if search or latex or falsify:
            raise typer.BadParameter("--search, --latex and --falsify are for all pages, not for one KEY")
        from attnrates._derivation import derivation

        return derivation(key, json=json, own=own)
    from attnrates._verify import verify as command

    return command(json=json, search=search, latex=latex, falsify=falsify, own=own)


@app.command(epilog="Example: attnrates train --data gaussian --rule ngd --step 0.1 --steps 1000 --out runs")
def train(
    *,
    data: Annotated[
        str,
        typer.Option(
            help="A data set, such as gaussian, gaussian:n=10,d=100 or digits:3v5, or an .npz file."
        ),
    ],
    rule: Annotated[Rule, typer.Option(help="Step-size rule.")],
    step: Annotated[
        float | None,
        typer.Option(help="Step size (gd, ngd), or the longest step allowed (polyak, optional)."),
    ] = None,
    exponent: Annotated[
        float, typer.Option(help="Let the step size of gd or ngd decay like (t+1)^(-EXPONENT).")
    ] = 0.0,
    steps: Annotated[int, typer.Option(min=1, help="Number of steps.")] = 1000,
    seeds: Annotated[int | None, typer.Option(min=1, help="Train on seeds 0 to K-1.", metavar="K")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Train on this seed only (default 0).")] = None,
    out: Annotated[Path, typer.Option(help="Folder that receives one folder a run.")],
    space: Annotated[
        Space, typer.Option(help="weight: the paper's algorithm on W. gram: the same, on coefficients of W.")
    ] = Space.weight,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    joint: Annotated[bool, typer.Option("--joint", help="Train the decoder too, both from zero.")] = False,
    decoder_rule: Annotated[Rule | None, typer.Option(help="With --joint: its rule (default: W's).")] = None,
    decoder_step: Annotated[
        float | None, typer.Option(help="With --joint: its step (default: W's, if the rule is W's).")
    ] = None,
    decoder_exponent: Annotated[
        float | None, typer.Option(help="With --joint: its exponent (default: W's, if the rule is W's).")
    ] = None,
    reference: Annotated[
        Reference | None,
        typer.Option(
            help="With --joint: whose optimal tokens W_mm is for, the final decoder's or the data's."
        ),
    ] = None,
) -> int:
    """Train W on a data set and record the run. A run that is already there, finished, is kept."""
    _one_thread()
    from attnrates._train import train as command

    return command(
        data=data,
        rule=rule.value,
        step=step,
        exponent=exponent,
        steps=steps,
        seeds=seeds,
        seed=seed,
        out=out,
        space=space.value,
        device=device,
        joint=joint,
        decoder_rule=decoder_rule,
        decoder_step=decoder_step,
        decoder_exponent=decoder_exponent,
        reference=reference,
    )


@app.command(epilog="Example: attnrates check runs --json")
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run, or a folder with runs at any depth.")],
    json: Json = False,
    own: OwnTheory = None,
    certified: Annotated[
        bool,
        typer.Option(
            "--certified",
            help="Repeat the runs in ball arithmetic; exit 1 unless every claimed bound is proved.",
        ),
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="A line for every theorem, also where many claim nothing for one reason; or every pair.",
        ),
    ] = False,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="List the pairs of constraints that break (N) instead of verdicts."),
    ] = False,
) -> int:
    """Hold every run in DIR against every theorem; exit 1 when a bound whose hypotheses hold is violated."""
    if pairs:
        if certified or own:
            raise typer.BadParameter("--pairs goes with neither --certified nor --theory")
        from attnrates._pairs import pairs as listing

        return listing(folder, json=json, every=every)
    from attnrates._check import check as command

    return command(folder, json=json, certified=certified, every=every, own=own)


@app.command(epilog="Example: attnrates gaussian --n 10 --tokens 6 --delta 0.01 --simulate 2000")
def gaussian(
    *,
    n: Annotated[int, typer.Option(help="Number of sequences.")],
    tokens: Annotated[int, typer.Option(help="Tokens in a sequence.")],
    sigma: Annotated[float, typer.Option(help="Standard deviation of the noise.")] = 0.1,
    signal: Annotated[float, typer.Option(help="Norm of the two signals.")] = 2.0,
    delta: Annotated[float, typer.Option(help="Probability of failure allowed.")] = 0.01,
    d: Annotated[
        int | None, typer.Option("--d", help="Also give the probability guaranteed in this dimension.")
    ] = None,
    query: Annotated[
        str, typer.Option(help="A sequence's query: first (its first token), own (more noise), or both.")
    ] = "both",
    simulate: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Hold the theorem against K simulated problems (in floats)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    json: Json = False,
) -> int:
    """Print the smallest d from which on Gaussian data are separable (S) and near-acute (N), as proved.

    Exit 1 when simulated problems contradict it.
    """
    _one_thread()
    from attnrates._gaussian import gaussian as command

    return command(
        n=n,
        tokens=tokens,
        signal=signal,
        sigma=sigma,
        delta=delta,
        d=d,
        query=query,
        simulate=simulate,
        seed=seed,
        json=json,
    )


@app.command(epilog="Example: attnrates survey --n 4,10 --tokens 6 --d 10,100,1000 --out survey.csv")
def survey(
    *,
    n: Annotated[str, typer.Option(help="Numbers of sequences, separated by commas.")] = "4,10",
    tokens: Annotated[str, typer.Option(help="Tokens in a sequence, likewise.")] = "4",
    d: Annotated[str, typer.Option("--d", help="Dimensions, likewise.")] = "5,10,30,100,300,1000,3000",
    sigma: Annotated[str, typer.Option(help="Standard deviations of the noise, likewise.")] = "0.1",
    signal: Annotated[float, typer.Option(help="Norm of the two signals.")] = 2.0,
    query: Annotated[
        str, typer.Option(help="A sequence's query: first (its first token) or own (noise).")
    ] = "first",
    problems: Annotated[int, typer.Option(min=1, help="Problems for each combination.")] = 100,
    steps: Annotated[int, typer.Option(min=1, help="Steps of normalized GD for each run.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the problems and starts.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="CSV file that keeps every finished row and is gone on from.")
    ] = None,
    json: Json = False,
) -> int:
    """Count how often Gaussian problems have (S), (N), (F), and runs reach W_mm from random and bad starts.

    The bad starts are -W_mm and all attention on wrong tokens. Exit 1 when the theorem is contradicted.
    """
    _one_thread()
    from attnrates._survey import command

    return command(
        n=n,
        tokens=tokens,
        d=d,
        sigma=sigma,
        signal=signal,
        query=query,
        problems=problems,
        steps=steps,
        seed=seed,
        out=out,
        json=json,
    )


@app.command(epilog="Example: attnrates finetune --out finetune --seeds 3")
def finetune(
    *,
    out: Annotated[Path, typer.Option(help="Folder that receives everything; finished runs are kept.")],
    data: Annotated[
        str,
        typer.Option(help="bbc:FIRST+SECOND, or a .jsonl or .csv file with text and label (two labels)."),
    ] = "bbc:business+tech",
    model: Annotated[
        Path | None, typer.Option(help="A local Hugging Face model folder (default: MiniLM).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few texts and steps, to try the pipeline.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds 0 to K-1.", metavar="K")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of each run.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Texts of a step.")] = None,
    length: Annotated[int | None, typer.Option(min=4, help="Most tokens of a text.")] = None,
    train_texts: Annotated[int | None, typer.Option("--train", min=1, help="Training texts.")] = None,
    validation_texts: Annotated[
        int | None, typer.Option("--validation", min=1, help="Validation texts, for tuning.")
    ] = None,
    test_texts: Annotated[int | None, typer.Option("--test", min=1, help="Test texts.")] = None,
    frozen_layers: Annotated[
        int | None, typer.Option(min=0, help="Leave the embeddings and the lowest layers as they are.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> int:
    """Fine-tune a transformer with SGD, normalized SGD, stochastic Polyak and Adam, each one's step tuned.

    Needs the packages of pip install .[language].
    """
    _one_thread()
    from attnrates._finetune import finetune as command

    sizes = {
        "steps": steps,
        "batch": batch,
        "length": length,
        "train": train_texts,
        "validation": validation_texts,
        "test": test_texts,
        "frozen_layers": frozen_layers,
    }
    return command(
        out=out,
        data=data,
        model=model,
        quick=quick,
        seeds=seeds,
        device=device,
        sizes={name: size for name, size in sizes.items() if size is not None},
    )


@app.command(epilog="Example: attnrates sweep grid.toml --out sweep")
def sweep(
    grid: Annotated[
        Path, typer.Argument(metavar="GRID.toml", help="Rules, steps, data and seeds: see the README.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the Parquet data set; finished cells are kept.")],
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Of a Dask scheduler, such as tcp://host:8786."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes on this machine (default: one a core).")
    ] = None,
    wait: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="How long to wait while there is no worker."),
    ] = 300.0,
) -> int:
    """Run a grid of rules, steps, data and seeds in parallel. Interrupted, the same command goes on."""
    _one_thread()
    from attnrates._sweep import sweep as command

    return command(grid, out=out, scheduler=scheduler, workers=workers, wait=wait)


@app.command(epilog="Example: attnrates figures --only fixed-decoder --out figures")
def figures(
    *,
    only: Annotated[str | None, typer.Option(metavar="NAME", help="Draw this figure only.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for PDF, PNG and CSV; the runs go to its subfolder runs.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Short runs, to try the pipeline.")] = False,
) -> int:
    """Draw the figures; the data of each are saved as CSV beside it, and reused when nothing changed."""
    _one_thread()
    from attnrates._figures import figures as command

    return command(only=only, out=out, quick=quick)


@app.command(epilog="Example: attnrates report --from out --out report.html")
def report(
    *,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Folder with runs and figures. Without it, the standard runs are made anew.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Short runs, where runs have to be made.")] = False,
) -> int:
    """Write one self-contained HTML file: theorems, verdicts, figures. Exit 1 if something fails."""
    _one_thread()
    from attnrates._report import report as command

    return command(out=out, source=source, quick=quick)


@app.command(epilog="Example: attnrates docs --out theorems")
def docs(
    *, out: Annotated[Path, typer.Option(help="Folder that receives index.html and KEY.html for every page.")]
) -> int:
    """Write a documentation page for every theorem, with its proof, from the objects that are proved."""
    from attnrates._docs import docs as command

    return command(out)


@app.command(epilog="Example: attnrates reproduce --out out")
def reproduce(
    *,
    out: Annotated[Path, typer.Option(help="Folder that receives everything.")],
    quick: Annotated[bool, typer.Option("--quick", help="Short runs, to try the pipeline.")] = False,
) -> int:
    """Prove, train, check, plot and report, in order. Interrupted, the same command goes on."""
    from attnrates._console import console

    _one_thread()
    from paper_figs.reproduce import reproduce as pipeline

    return HOLDS if pipeline(out, quick=quick, console=console(), err=console(stderr=True)) else FAILS


def _one_thread() -> None:
    """Keep runs, which are mostly small, on one thread: more only wait for one another.

    On a machine that is busy otherwise they take twenty times as long with two threads. A setting of the
    user's own is respected; what is loaded already keeps its threads.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; whatever goes wrong is told on stderr."""
    try:
        code = app(args=arguments, prog_name="attnrates", standalone_mode=False) or HOLDS
        sys.stdout.flush()
    except typer.TyperException as error:
        return _refuse(error.format_message().replace("Value error, ", ""), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:  # the reader went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except MemoryError:
        return _refuse("not enough memory for this problem", BAD_INPUT)
    except OSError as error:
        return _refuse(f"{error.filename or 'file system'}: {error.strerror or error}", BAD_INPUT)
    except Exception as error:
        from numerics.errors import AttnratesError

        if isinstance(error, AttnratesError):
            return _refuse(str(error), BAD_INPUT)
        if _interrupted(error):
            return _refuse("interrupted; the same command begins anew", INTERRUPTED)
        traceback.print_exc()
        return _refuse("this is a defect of attnrates, please report it with the lines above", DEFECT)
    if code == INTERRUPTED:  # typer turns an interrupt inside a command into this code
        return _refuse("interrupted; what is finished is kept, the same command goes on from there", code)
    return int(code)


def _interrupted(error: BaseException | None) -> bool:
    """Whether an interrupt is behind it: extension modules turn one into an ImportError as they load."""
    seen = 0
    while error is not None and seen < 100:
        if isinstance(error, KeyboardInterrupt):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


def _refuse(message: str, code: int) -> int:
    """One printable line on stderr."""
    from paper_figs.wording import printable

    line = " ".join(message.split())
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    print(f"attnrates: {printable(line)}", file=sys.stderr)
    return code


def _send_lost_interrupts_again() -> None:
    """See to it that an interrupt counts which comes while foreign code calls back, as the compiler does.

    An exception cannot pass through such code: Python reports it and goes on.
    """
    report = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            report(lost)
            return
        again = Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = hook


def main() -> None:
    """Entry point of the command `attnrates`."""
    _send_lost_interrupts_again()
    sys.exit(run())


if __name__ == "__main__":
    main()
