import { createHash } from "node:crypto";
import { visible } from "#errors/draw.ts";
import type { Problem } from "#errors/problem.ts";
import { printJson } from "../terminal/print-json.ts";
import { fileInRepository } from "./file-in-repository.ts";

/**
 * Problems as a Code Quality report of GitLab, which shows them in the merge request (docs.gitlab.com, “Code Quality”). `workspace`:
 * the folder of the repository. What has no place of its own stands at the beginning of the roster.
 */
export function gitlabReport(problems: readonly Problem[], project: string, workspace: string): string {
  const seen = new Map<string, number>();
  const entries = problems.map(({ code, message, at, hint }) => {
    const path = fileInRepository(at ?? { file: "roster", line: 1, column: 1 }, project, workspace);
    // Without the line: what only moved is not new. The same once more in a file is another one.
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
