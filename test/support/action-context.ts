import type { ActionContext } from "#engine/orchestrate/action.ts";

/** The context of an action under test, with its notes. A question, passphrase or warning that the test does not expect rejects. */
export function actionContext(fields: Partial<ActionContext> = {}): ActionContext & { readonly notes: string[] } {
  const notes: string[] = [];
  return {
    runId: "r1",
    challenge: "a challenge",
    dryRun: false,
    project: "/nowhere",
    home: "/nowhere",
    nodes: new Map(),
    targets: [],
    ended: new Map(),
    signal: new AbortController().signal,
    note: (text) => notes.push(text),
    output: () => undefined,
    ask: ({ text }) => Promise.reject(new Error(`nobody answers “${text}”`)),
    passphrase: () => Promise.reject(new Error("nobody knows the passphrase")),
    warn: (text) => {
      throw new Error(`an unexpected warning: ${text}`);
    },
    ...fields,
    notes,
  };
}
