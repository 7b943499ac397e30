"""What the report on a GPU measures, and in what order."""

from experiments.benchmarks.gpu_report_cases import cases


def test_the_goal_comes_first():
    groups = cases(several_seeds=True)
    assert [case.part for case in groups[0]] == ["training", "acting", "learning"]
    assert groups[0][0].name == "paper, bfloat16, 7 x 40 worlds, training"
    names = [case.name for group in groups for case in group]
    assert len(set(names)) == len(names) == 12
    alone = [case for group in cases(several_seeds=False) for case in group]
    assert {case.seeds for case in alone} == {1}
