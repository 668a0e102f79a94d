"""An option that a variable of the environment may set."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from brigade.errors import UsageError


class Setting(click.Option):
    """Names the variable, not the option, where it is that whose value cannot be meant."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            if self._is_from_environment(ctx):
                error.param_hint = str(self.envvar)
            raise
        except UsageError as error:
            if self._is_from_environment(ctx):
                raise UsageError(f"{self.envvar}: {error.message}", hint=error.hint) from error
            raise

    def _is_from_environment(self, ctx: click.Context) -> bool:
        return ctx.get_parameter_source(self.name or "") == ParameterSource.ENVIRONMENT
