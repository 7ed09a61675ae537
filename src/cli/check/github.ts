import { visible } from "#errors/draw.ts";
import type { Problem } from "#errors/problem.ts";
import { fileInRepository } from "./file-in-repository.ts";

/**
 * A problem as a workflow command of GitHub Actions, which shows it at its line
 * (docs.github.com, “Workflow commands for GitHub Actions”). `workspace`: the folder of the repository, which files are named from.
 */
export function githubLine({ code, message, at, hint }: Problem, project: string, workspace: string): string {
  const place = at && {
    file: fileInRepository(at, project, workspace),
    line: at.line,
    col: at.column,
    ...(at.length !== undefined && { endColumn: at.column + at.length }),
  };
  const properties = Object.entries({ ...place, title: code }).map(([key, value]) => `${key}=${property(value)}`);
  return `::error ${properties.join(",")}::${escaped(hint === undefined ? message : `${message}\n${hint}`)}`;
}

function escaped(text: string): string {
  return text
    .split("\n")
    .map((line) => visible(line).replaceAll("%", "%25"))
    .join("%0A");
}

/** In a property, its own separators are written otherwise, too. */
function property(value: string | number): string {
  return escaped(String(value)).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
