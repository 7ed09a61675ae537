import { createHash } from "node:crypto";
import { visible } from "#errors/draw.ts";
import type { Problem } from "#errors/problem.ts";
import { githubError } from "#tui/ci.ts";
import { printJson } from "../terminal/print-json.ts";
import { fileInRepository } from "../terminal/report-failure.ts";

/**
 * Problems as a Code Quality report of GitLab, which shows them in the merge request (docs.gitlab.com, “Code Quality”). `workspace`:
 * the folder of the repository. Problems without a place stand at the beginning of the roster.
 */
export function gitlabReport(problems: readonly Problem[], project: string, workspace: string): string {
  const seen = new Map<string, number>();
  const entries = problems.map(({ code, message, at, hint }) => {
    const path = fileInRepository(at ?? { file: "roster", line: 1, column: 1 }, project, workspace);
    // The fingerprint leaves out the line, so that a moved problem is not new. A repetition within a file counts as another.
    const same = JSON.stringify([path, code, message]);
    const times = (seen.get(same) ?? 0) + 1;
    seen.set(same, times);
    return {
      description: visible(hint === undefined ? message : `${message} (${hint})`),
      check_name: code,
      fingerprint: createHash("sha256").update(`${same}${times}`).digest("hex"),
      severity: "major",
      location: { path, lines: { begin: at?.line ?? 1 } },
    };
  });
  return `${printJson(entries, 2)}\n`;
}

/** A problem as an annotation of GitHub Actions at its line. `workspace`: the folder of the repository, from which files are named. */
export function githubLine({ code, message, at, hint }: Problem, project: string, workspace: string): string {
  const place = at && {
    file: fileInRepository(at, project, workspace),
    line: at.line,
    col: at.column,
    ...(at.length !== undefined && { endColumn: at.column + at.length }),
  };
  return githubError({ ...place, title: code }, visible(hint === undefined ? message : `${message}\n${hint}`));
}
