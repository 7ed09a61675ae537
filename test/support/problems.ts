import { KcoreError } from "#errors/problem.ts";

/** The problems that `work` throws, a line each: `file:line:column+length message [CODE] | hint`. */
export function problemsIn(work: () => unknown): string[] {
  try {
    work();
  } catch (error) {
    return linesOf(error);
  }
  throw new Error("nothing was thrown");
}

/** As problemsIn, for a rejected promise. */
export async function problemsOfRejection(work: Promise<unknown>): Promise<string[]> {
  try {
    await work;
  } catch (error) {
    return linesOf(error);
  }
  throw new Error("nothing was thrown");
}

function linesOf(error: unknown): string[] {
  if (!(error instanceof KcoreError)) throw error;
  return error.problems.map(({ at, message, code, hint }) => {
    const place = at === undefined ? "" : `${at.file}:${at.line}:${at.column}+${at.length ?? 1} `;
    return `${place}${message} [${code}]${hint === undefined ? "" : ` | ${hint}`}`;
  });
}
