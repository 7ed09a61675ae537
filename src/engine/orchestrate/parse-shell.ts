import { run } from "#base/process.ts";
import type { Problem } from "#errors/problem.ts";
import { type ShellSource, skeletonsOf } from "#engine/expressions/shell-values.ts";
import type { SourceScalar } from "#engine/yaml/node.ts";
import { forEachLimited } from "./semaphore.ts";

/** The most shells that parse at a time. */
const MAX_SHELLS = 4;

/**
 * The problems of texts that the bastion's shells cannot parse with any choice of their blocks; `sh -n` runs nothing. A shell
 * that is not installed checks nothing.
 */
export async function parseShell(sources: Iterable<ShellSource>): Promise<readonly Problem[]> {
  const known = new Map<string, Promise<string | undefined>>();
  const parse = (shell: string, text: string): Promise<string | undefined> => {
    const key = JSON.stringify([shell, text]);
    const error = known.get(key) ?? parseError(shell, text);
    known.set(key, error);
    return error;
  };
  const problems = new Map<SourceScalar, Problem>();
  await forEachLimited([...sources], MAX_SHELLS, async ({ shell, scalar }) => {
    let first: string | undefined;
    for (const text of skeletonsOf(scalar)) {
      const error = await parse(shell, text);
      if (error === undefined) return;
      first ??= error;
    }
    if (first !== undefined) problems.set(scalar, problemOf(shell, first, scalar));
  });
  return [...problems.values()];
}

/** The shell's error for a text that it cannot parse. A text for sh may use bash's syntax: a node's sh may be another shell than the bastion's. */
async function parseError(shell: string, text: string): Promise<string | undefined> {
  const error = await errorOf(shell, text);
  const isAccepted = error === undefined || (shell === "sh" && (await errorOf("bash", text, error)) === undefined);
  return isAccepted ? undefined : error;
}

/** The shell's error, if it cannot parse the text; `absent` if the shell is not installed. */
async function errorOf(shell: string, text: string, absent?: string): Promise<string | undefined> {
  // The shell would run a file that these variables name.
  const { BASH_ENV: _, ENV: __, ...env } = process.env;
  const { code, stderr } = await run([shell, "-n"], { env: { ...env, LC_ALL: "C" }, input: `${text}\n` });
  return code === 0 ? undefined : code === 127 ? absent : stderr;
}

function problemOf(shell: string, error: string, { at }: SourceScalar): Problem {
  const [first = ""] = error.split("\n");
  const [, line, what = first] = /^\S+?: (?:line )?(\d+): (.*)$/.exec(first) ?? [];
  return {
    code: "SHELL_SYNTAX",
    message: `${shell} cannot parse this text${line === undefined ? "" : `, line ${line}`}: ${what}`,
    at,
    hint: `expressions stand for a word here; printf '%s' 'TEXT' | ${shell} -n tells the same`,
  };
}
