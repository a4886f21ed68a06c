"""What `bin/start` compiles beside the server: every first computation, once and small."""

from pathlib import Path

from webapp.supervisor.warm import warm


def test_both_halves_are_computed_from_learning_to_the_result(tmp_path: Path) -> None:
    warm(tmp_path)
    for name in ("new.csv", "evaluation/roc.csv", "masks/0.mask.png", "masks/1.marginals.npy"):
        assert (tmp_path / name).stat().st_size > 0, name
