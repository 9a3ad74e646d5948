"""Commands to record: shell syntax is refused, with an alternative."""

import pytest
from click.testing import CliRunner

from epprof_nb.cli import main
from epprof_nb.commands.shell_syntax import refuse_shell_syntax


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("> log.txt", "`> log.txt`"),
        (">log.txt", "`>log.txt`"),
        (">> log.txt 2>&1", "`>> log.txt`"),
        ("2>&1", "`2>&1`"),
        ("&> log.txt", "`&> log.txt`"),
        ("< in.txt", "`< in.txt`"),
        ("| tee log.txt", "`|`"),
        ("|| true", "`||`"),
        ("&& echo done", "`&&`"),
        ("; echo done", "`;`"),
        ("--epochs 1; echo done", "`;`"),
        ("&", "`&`"),
        ("--seed $SEED", "`$SEED`"),
        ("--seed ${SEED}", "`${SEED}`"),
        ('--home "x" --seed $SEED', "`$SEED`"),
        ("--day $(date)", "`$(`"),
        ("--day `date`", "```"),
    ],
)
def test_syntax_of_a_shell_is_named(rest, found):
    with pytest.raises(ValueError, match="without a shell") as error:
        refuse_shell_syntax(f"python train.py {rest}")
    assert f"has {found}, but" in str(error.value)


def test_a_variable_that_a_shell_would_set_is_named():
    with pytest.raises(ValueError, match=r"sets CUDA_VISIBLE_DEVICES for a shell.*`CUDA_VISIBLE_"):
        refuse_shell_syntax("CUDA_VISIBLE_DEVICES=0 python train.py")


@pytest.mark.parametrize(
    "rest",
    [
        "--comment 'a > b; c | d && $e'",
        '--comment "a > b"',
        "--arrow a->b --shape (1,2) --ratio a|b --query a&b",
        r"--price \$PRICE",
        "--learning-rate=1e-3 --name=x",
        "--price 5$",
        "",
    ],
)
def test_arguments_are_left_alone(rest):
    refuse_shell_syntax(f"python train.py {rest}")


@pytest.mark.parametrize(
    ("command", "why"),
    [("compare --run {} {}", "`> out.txt`"), ("calibrate --run {}", "`> out.txt`")],
)
def test_commands_say_it_before_they_run_anything(tmp_path, command, why):
    script = tmp_path / "train.py"
    script.write_text("open('ran', 'w')")
    text = f"python {script} > out.txt"
    arguments = [text if part == "{}" else part for part in command.split()]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (1, 2)
    assert why in " ".join(result.output.split())
    assert not list(tmp_path.glob("ran"))


def test_an_open_quotation_is_named(tmp_path):
    result = CliRunner().invoke(main, ["compare", "--run", "python 'a.py", "python b.py"])
    assert "cannot be split into words: No closing quotation" in " ".join(result.output.split())
