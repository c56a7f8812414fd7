"""`ragaudit risk`: disclosure risk, its bounds, and audits by attack."""

import ragaudit.privacy  # noqa: F401 - the group exists where this member is installed
import typer
from ragaudit.lab.risk_command import audit, bound, calibrate, translate
from ragaudit.lab.risk_command.options import by_option

app = typer.Typer(
    no_args_is_help=True,
    help="Disclosure risk: reconstruction advantage (RAD), its bounds, and audits by attack.",
)
app.command("bound", epilog=bound.EXAMPLE)(by_option(bound.command))
app.command("calibrate", epilog=calibrate.EXAMPLE)(
    by_option(calibrate.command, advantage="--target")
)
app.command("audit", epilog=audit.EXAMPLE)(by_option(audit.command))
app.command("translate", epilog=translate.EXAMPLE)(by_option(translate.command))
