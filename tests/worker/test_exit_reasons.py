"""The end of a training process in words."""

import pytest

from worker.exit_reasons import ending


@pytest.mark.parametrize(
    ("returncode", "message", "kind", "reason"),
    [
        (0, "", "finished", "trained to the end"),
        (75, "", "stopped", "stopped on request after a checkpoint"),
        (1, "loss is not finite", "fault", "training failed (exit code 1): loss is not finite"),
        (1, "", "fault", "training failed (exit code 1): see the log"),
        (2, "", "fault", "training failed (exit code 2): the configuration, data or model was refused"),
        (
            -9,
            "",
            "lost",
            "the training process was killed by SIGKILL, most often by the system when memory runs out",
        ),
        (-11, "", "lost", "the training process was killed by SIGSEGV: a crash inside native code"),
        (-15, "", "lost", "the training process was killed by SIGTERM"),
        (-40, "", "lost", "the training process was killed by signal 40"),
    ],
)
def test_every_end_has_a_reason(returncode, message, kind, reason):
    end = ending(returncode, message)
    assert (end.kind, end.reason) == (kind, reason)
    assert end.exit_code == (returncode if returncode >= 0 else None)
    assert end.exit_signal == (-returncode if returncode < 0 else None)
