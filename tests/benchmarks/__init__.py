"""Speed and tightness, as ratios against named baselines: python -m tests.benchmarks."""
