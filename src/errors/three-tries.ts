import type { ErrorCode } from "./codes.ts";
import { KcoreError } from "./problem.ts";

/**
 * Calls `attempt`, which asks for a secret and tries it, up to three times while the secret is wrong. `again`: the last one was wrong.
 * @throws an error of `attempt`: at the third time, or at once if its code is not in `wrong`
 */
export async function threeTries<T>(attempt: (again: boolean) => Promise<T>, wrong: readonly ErrorCode[]): Promise<T> {
  for (let tries = 1; ; tries++)
    try {
      return await attempt(tries > 1);
    } catch (error) {
      const isWrong = error instanceof KcoreError && error.problems.some(({ code }) => wrong.includes(code));
      if (tries === 3 || !isWrong) throw error;
    }
}

/** A question's text, which says if the last answer was wrong. */
export function questionText(text: string, again: boolean): string {
  return again ? `That was wrong. ${text}` : text;
}
