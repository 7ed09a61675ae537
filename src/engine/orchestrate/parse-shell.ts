import { run } from "#base/process.ts";
import type { Problem } from "#errors/problem.ts";
import { type ShellSource, skeletonsOf } from "#engine/expressions/shell-values.ts";
import type { SourceScalar } from "#engine/yaml/node.ts";
import { forEachLimited } from "./semaphore.ts";

/** The most shells that parse at a time. */
const AT_ONCE = 4;

/**
 * The problems of texts that the bastion's shells cannot parse with any choice of their blocks; `sh -n` runs nothing. A shell
 * that is not installed checks nothing.
 */
export async function parseShell(sources: Iterable<ShellSource>): Promise<readonly Problem[]> {
  const known = new Map<string, Promise<string | undefined>>();
  const parse = (shell: string, text: string): Promise<string | undefined> => {
    const key = JSON.stringify([shell, text]);
    const said = known.get(key) ?? parseError(shell, text);
    known.set(key, said);
    return said;
  };
  const problems = new Map<SourceScalar, Problem>();
  await forEachLimited([...sources], AT_ONCE, async ({ shell, scalar }) => {
    let first: string | undefined;
    for (const text of skeletonsOf(scalar)) {
      const said = await parse(shell, text);
      if (said === undefined) return;
      first ??= said;
    }
    if (first !== undefined) problems.set(scalar, problemOf(shell, first, scalar));
  });
  return [...problems.values()];
}

/** The shell's error for a text that it cannot parse. Text for sh may be bash's: a node's sh may be another shell than the bastion's. */
async function parseError(shell: string, text: string): Promise<string | undefined> {
  const said = await parsedBy(shell, text);
  const isTaken = said === undefined || (shell === "sh" && (await parsedBy("bash", text, said)) === undefined);
  return isTaken ? undefined : said;
}

/** The shell's error, if it cannot parse the text; `absent` if the shell is not installed. */
async function parsedBy(shell: string, text: string, absent?: string): Promise<string | undefined> {
  // The shell would run a file that these variables name.
  const { BASH_ENV: _, ENV: __, ...env } = process.env;
  const { code, stderr } = await run([shell, "-n"], { env: { ...env, LC_ALL: "C" }, input: `${text}\n` });
  return code === 0 ? undefined : code === 127 ? absent : stderr;
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
