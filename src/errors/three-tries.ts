import type { ErrorCode } from "./codes.ts";
import { KcoreError } from "./problem.ts";

/**
 * Asks for a secret and tries it; asks again while it is wrong, three times in all. `again`: the answer before was wrong.
 * @throws what `attempt` throws: another code than these, or at the third time
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

/** A question that is asked again. */
export function askedAgain(text: string, again: boolean): string {
  return again ? `That was wrong. ${text}` : text;
}
