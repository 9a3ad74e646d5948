"""``epprof learn-costs``: the command that a notebook runs once per machine in the background."""

from __future__ import annotations

import click

from epprof_nb.commands.calibrate import end_with_input


@click.command(hidden=True)
@click.option("--modules", is_flag=True, help="Import PyTorch, to learn what its modules cost.")
@click.option("--gpu", is_flag=True, help="Launch kernels on the first GPU.")
@click.option("--until-eof", is_flag=True, hidden=True)
def learn_costs(*, modules: bool, gpu: bool, until_eof: bool) -> None:
    """Measure what recording an event costs on this machine, for estimates of what it added.

    With `GpuProfile.estimate_added`, cells without warm-ups then say what profiling added.
    """
    if until_eof:
        end_with_input()
    from epprof_nb.commands.recording_costs import learned_costs
    from epprof_nb.files.recording_costs import save_costs

    costs = learned_costs(modules=modules, gpu=gpu)
    for kind, cost in costs.items():
        click.echo(f"{kind:12} {cost:8,.0f} ns")
    try:
        path = save_costs(costs)
    except OSError as error:
        raise click.ClickException(f"The values were not kept: {error}.") from error
    click.echo(f"Kept in {path}")
