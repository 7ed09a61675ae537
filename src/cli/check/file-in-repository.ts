import { isAbsolute, join, relative } from "node:path";
import type { SourcePosition } from "#errors/problem.ts";

/** A file of the project as its repository names it; `workspace` is the repository's folder. */
export function fileInRepository({ file }: SourcePosition, project: string, workspace: string): string {
  return relative(workspace, isAbsolute(file) ? file : join(project, file));
}
