"""The option ``--baseline``: the earlier profile, and the comparison below the new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from epprof_nb.core.errors import EpprofError
from epprof_nb.profiles import Profile, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.views.comparison import Comparison


@dataclass(frozen=True, slots=True)
class Baseline:
    """The profiles to compare with, and the text that names them."""

    text: str
    profiles: tuple[Profile, ...]

    def compare(self, new: Profile, name: str | None, *, may_calibrate: bool) -> Comparison:
        """Compare a new profile, of variable `name`, with the baseline.

        A baseline whose repeats alternated with the new code is preferred. If the result
        assumes how much recordings vary and `may_calibrate`, a background process measures it.
        """
        from epprof_nb.notebook.background_calibration import CALIBRATION, NOTE
        from epprof_nb.views.comparison import compare

        old = self.profiles if new.baseline is None else new.baseline
        result = compare(old, new, names=(self.text, name or "new"))
        if result.assumes_spread and may_calibrate and CALIBRATION.start():
            result = result.with_note(NOTE)
        return result


def find_baseline(text: str, variables: Mapping[str, Any]) -> Baseline:
    """Return the baseline that `text` names, before the code runs and can change it.

    Raises
    ------
    UsageError
        If it is neither a variable with profiles nor a file with a profile.
    """
    if text in variables:
        value = variables[text]
        profiles = [value] if isinstance(value, Profile) else value
        if (
            isinstance(profiles, Sequence)
            and profiles
            and all(isinstance(profile, Profile) for profile in profiles)
        ):
            return Baseline(text, tuple(profiles))
        raise UsageError(
            f"--baseline {text}: the variable is of type {type(value).__name__}, not a profile. "
            f"The cell did not run. Record a baseline with: %%gpuprofile {text} --repeat 20"
        )
    if text.endswith(".epprof"):
        try:
            return Baseline(text, (load(Path(text).expanduser()),))
        except (EpprofError, OSError) as error:
            raise UsageError(
                f"--baseline {text} cannot be read: {error}. The cell did not run."
            ) from None
    raise UsageError(
        f"--baseline {text}: there is no such variable, and the path of a profile ends in .epprof. "
        f"The cell did not run. Record a baseline with: %%gpuprofile {text} --repeat 20"
    )
