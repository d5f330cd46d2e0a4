"""Pools of values that Faker draws: one child process draws a pool, the rows then pick from it by number."""
