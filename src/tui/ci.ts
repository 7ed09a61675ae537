import { cleanText } from "#engine/events/clean.ts";
import type { SourcePosition } from "#errors/problem.ts";
import type { RunDigest } from "./digest.ts";
import { itemTitle } from "./work-item.ts";

/** The CI systems whose logs can be folded. */
export type Ci = "github" | "gitlab";

/** The CI that reads the output, by the variables that it sets. */
export function detectCi(env: Readonly<Record<string, string | undefined>>): Ci | undefined {
  if (env["GITHUB_ACTIONS"] === "true") return "github";
  return env["GITLAB_CI"] === "true" ? "gitlab" : undefined;
}

export interface FoldedLines {
  readonly title: string;
  /** Unique within a log. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly until: number;
}

/** The line that opens a fold, and the line that closes it. */
export function foldOf(ci: Ci, { title, id, since, until }: FoldedLines): readonly [string, string] {
  if (ci === "github") return [`::group::${title}`, "::endgroup::"];
  const mark = (edge: string, at: number) => `\u001b[0Ksection_${edge}:${Math.floor(at / 1000)}:${id}`;
  return [`${mark("start", since)}[collapsed=true]\r\u001b[0K${title}`, `${mark("end", until)}\r\u001b[0K`];
}

/**
 * The text without commands for GitHub's runner (`::` at the start of a line, `##[` anywhere): a node's output must not command the
 * runner.
 */
export function escapeForCi(ci: Ci | undefined, text: string): string {
  return ci === "github" ? text.replaceAll("##[", "## [").replaceAll(/^(\s*):(?=:)/gm, "$1: ") : text;
}

/**
 * The failures as annotations of GitHub, a line for each cause. `fileOf`: the path of a file in its repository; undefined for a
 * file outside. Ends without a line break.
 */
export function drawCiErrors({ failures }: RunDigest, fileOf: (at: SourcePosition) => string | undefined): string {
  return failures
    .map(({ nodes, stage, title, problem, cause, at = problem.at }) => {
      const { code, hint } = problem;
      const more = nodes.length > 1 ? ` and ${nodes.length - 1} more` : "";
      const what = itemTitle({ stage, title });
      const file = at && fileOf(at);
      const properties = {
        title: nodes.length === 0 ? what : `${nodes[0]}${more}  ${what}`,
        ...(at && file !== undefined && { file, line: at.line, col: at.column }),
      };
      return githubError(properties, `${cause} [${code}]${hint === undefined ? "" : `\n${hint}`}`);
    })
    .join("\n");
}

/** An error as a workflow command of GitHub Actions (docs.github.com, “Workflow commands for GitHub Actions”), on one line. */
export function githubError(properties: Readonly<Record<string, string | number>>, message: string): string {
  const escape = (text: string): string =>
    cleanText(text).replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  const drawn = Object.entries(properties).map(
    ([name, value]) => `${name}=${escape(String(value)).replaceAll(":", "%3A").replaceAll(",", "%2C")}`,
  );
  return `::error ${drawn.join(",")}::${escape(message)}`;
}
