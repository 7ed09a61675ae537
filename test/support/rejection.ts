import { AssertionError } from "chai";
import { KcoreError } from "#errors/problem.ts";

/** The KcoreError that a promise rejects with. @throws AssertionError if the promise resolves; any other error of the promise */
export async function rejectionOf(promise: Promise<unknown>): Promise<KcoreError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof KcoreError) return error;
    throw error;
  }
  throw new AssertionError("expected a KcoreError, but nothing was thrown");
}

/** The code of the first problem that a promise rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return (await rejectionOf(promise)).problems[0]?.code ?? "";
}
