import { spawn } from "node:child_process";
import type { Problem } from "#errors/problem.ts";
import { type ShellSource, skeletonsOf } from "#engine/expressions/shell-values.ts";
import type { SourceScalar } from "#engine/yaml/node.ts";

/** How many shells parse at a time. */
const AT_ONCE = 4;

/** What shells of this machine, which run nothing of it (`sh -n`), do not take of these texts. A shell that is not here is not asked. */
export async function parseShell(sources: Iterable<ShellSource>): Promise<readonly Problem[]> {
  const texts = new Map<string, { readonly shell: string; readonly text: string; readonly scalars: SourceScalar[] }>();
  for (const { shell, scalar } of sources)
    for (const text of skeletonsOf(scalar)) {
      const key = JSON.stringify([shell, text]);
      const known = texts.get(key) ?? { shell, text, scalars: [] };
      if (!known.scalars.includes(scalar)) known.scalars.push(scalar);
      texts.set(key, known);
    }
  const problems = new Map<SourceScalar, Problem>();
  const waiting = texts.values();
  const work = async (): Promise<void> => {
    for (const { shell, text, scalars } of waiting) {
      const said = await saidOf(shell, text);
      if (said !== undefined) for (const scalar of scalars) problems.set(scalar, problemOf(shell, said, scalar));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return [...problems.values()];
}

/** What the shell says of a text that it cannot parse. */
function saidOf(shell: string, text: string): Promise<string | undefined> {
  // A file that the environment names would be run.
  const { BASH_ENV: _, ENV: __, ...env } = process.env;
  const child = spawn(shell, ["-n"], { env: { ...env, LC_ALL: "C" }, stdio: ["pipe", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (part: string) => (said += part));
  // A shell stops reading at its first mistake.
  child.stdin.on("error", () => undefined).end(`${text}\n`);
  return new Promise((resolve) => {
    child.on("error", () => resolve(undefined));
    child.on("close", (code) => resolve(code === 0 ? undefined : said));
  });
}

function problemOf(shell: string, said: string, { at }: SourceScalar): Problem {
  const [first = ""] = said.split("\n");
  const [, line, what = first] = /^\S+?: (?:line )?(\d+): (.*)$/.exec(first) ?? [];
  return {
    code: "SHELL_SYNTAX",
    message: `${shell} cannot parse this text${line === undefined ? "" : `, line ${line}`}: ${what}`,
    at,
    hint: `expressions stand for a word here; printf '%s' 'TEXT' | ${shell} -n tells the same`,
  };
}
