import type { Problem } from "#errors/problem.ts";

/** The problem with the last lines of its detail: a cause stands at the end of what a command said. */
export function endOfDetail(problem: Problem, lines: number): Problem {
  if (!problem.detail) return problem;
  const all = problem.detail.trimEnd().split("\n");
  if (all.length <= lines + 1) return problem;
  return { ...problem, detail: [`… ${all.length - lines} lines before`, ...all.slice(-lines)].join("\n") };
}
